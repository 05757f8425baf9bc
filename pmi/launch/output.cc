#include "pmi/launch/output.h"

#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weft::pmi {
namespace {

const Writer kPrompter{0};

// A pipe that is ready takes PIPE_BUF bytes without waiting; a file always does.
long WriteWithoutWaiting(int fd, const char* bytes, size_t count) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return -1;
  if (S_ISSOCK(status.st_mode)) return send(fd, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  return write(fd, bytes, std::min<size_t>(count, S_ISREG(status.st_mode) ? 1 << 20 : PIPE_BUF));
}

}  // namespace

void OutputMerger::Add(Writer writer, std::string_view bytes, Clock::time_point now) {
  if (discarding_ || bytes.empty()) return;
  std::string& kept = partial_[writer];
  const size_t last = bytes.rfind('\n');
  if (last == std::string_view::npos) {
    kept.append(bytes);
  } else {
    kept.append(bytes.substr(0, last + 1));
    Emit(writer, kept);
    kept.assign(bytes.substr(last + 1));
  }
  if (kept.size() > kLongestLine) EmitPartial(writer);
  if (writer == kPrompter) prompt_at_ = kept.empty() ? std::nullopt : std::optional(now + kSilence);
}

void OutputMerger::AddOwnLine(std::string_view line) {
  if (discarding_) return;
  if (unfinished_) out_ += '\n';
  unfinished_.reset();
  out_.append(line).append("\n");
}

std::string OutputMerger::RankLabel(Writer writer) {
  return (writer.job == 0 ? "[" : "[job " + std::to_string(writer.job) + " rank ") + std::to_string(writer.rank) + "] ";
}

// `text` in full, with labels at the beginnings of lines.
void OutputMerger::Emit(Writer writer, std::string_view text) {
  bool at_start = unfinished_ != writer;
  if (unfinished_ && at_start) out_ += '\n';
  unfinished_ = text.ends_with('\n') ? std::nullopt : std::optional(writer);
  if (!label_) {
    out_ += text;
    return;
  }
  const std::string label = label_(writer);
  while (!text.empty()) {
    const size_t length = std::min(text.find('\n'), text.size() - 1) + 1;
    if (at_start) out_ += label;
    out_ += text.substr(0, length);
    text.remove_prefix(length);
    at_start = true;
  }
}

void OutputMerger::EmitPartial(Writer writer) {
  const auto kept = partial_.find(writer);
  if (kept == partial_.end() || kept->second.empty()) return;
  Emit(writer, kept->second);
  kept->second.clear();
  if (writer == kPrompter) prompt_at_.reset();
}

void OutputMerger::Finish(Writer writer) {
  EmitPartial(writer);
  partial_.erase(writer);
}

void OutputMerger::Tick(Clock::time_point now) {
  if (prompt_at_ && now >= *prompt_at_) EmitPartial(kPrompter);
}

int OutputMerger::WriteTo(int fd) {
  if (unwritten() == 0) return 0;
  const long count = WriteWithoutWaiting(fd, out_.data() + written_, unwritten());
  if (count < 0) return errno == EAGAIN || errno == EINTR ? 0 : errno;
  written_ += static_cast<size_t>(count);
  if (written_ == out_.size() || written_ >= kMostUnwritten) {
    out_.erase(0, written_);
    written_ = 0;
  }
  return 0;
}

void OutputMerger::Discard() {
  discarding_ = true;
  partial_.clear();
  out_.clear();
  written_ = 0;
  prompt_at_.reset();
}

}  // namespace weft::pmi
