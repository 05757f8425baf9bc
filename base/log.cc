#include "base/log.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdio>

namespace weft {
namespace {

// One write, so that lines of several threads and processes do not mix; a line break inside would look like another
// line.
void WriteLine(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  int saved = errno;  // callers log on the way to reporting errno
  while (write(STDERR_FILENO, line.data(), line.size()) < 0 && errno == EINTR) {
  }
  errno = saved;
}

}  // namespace

std::atomic<bool> g_trace_enabled{false};

namespace {
std::atomic<bool> g_warnings_silenced{false};
}  // namespace

void SilenceWarnings(bool silent) { g_warnings_silenced.store(silent, std::memory_order_relaxed); }

void LogWarning(std::string_view message) {
  if (g_warnings_silenced.load(std::memory_order_relaxed)) return;
  std::string line = "weft: ";
  line += message;
  WriteLine(std::move(line));
}

void LogLines(std::string_view text) {
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    LogWarning(text.substr(from, end - from));
    from = end + 1;
  }
}

void Trace(std::string_view message) {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::string line = Format("weft: %lld.%06ld [%d] ", static_cast<long long>(now.tv_sec), now.tv_nsec / 1000,
                            static_cast<int>(getpid()));
  line += message;
  WriteLine(std::move(line));
}

std::string Format(const char* format, ...) {
  char small[256];
  va_list arguments;
  va_start(arguments, format);
  int length = std::vsnprintf(small, sizeof small, format, arguments);
  va_end(arguments);
  if (length < 0) return format;
  if (static_cast<size_t>(length) < sizeof small) return std::string(small, length);

  std::string text(length + 1, '\0');  // room for vsnprintf's terminator
  va_start(arguments, format);
  std::vsnprintf(text.data(), text.size(), format, arguments);
  va_end(arguments);
  text.resize(length);
  return text;
}

}  // namespace weft
