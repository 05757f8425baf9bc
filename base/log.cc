#include "base/log.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <mutex>
#include <optional>
#include <vector>

#include "base/line_output.h"
#include "base/warning_limit.h"

namespace weft {
namespace {

constexpr std::chrono::seconds kPatienceAtEnd{1};

struct Limit {
  Limit* of_parent = nullptr;  // stays reachable, and untouched: another thread may hold its lock for ever
  std::mutex mutex;            // guards the rest
  WarningLimit places;
};
Limit* g_limit = new Limit;  // another one in the child of a fork
std::atomic<bool> g_warnings_silenced{false};

// One write, so that lines of several threads and processes do not mix; a line break inside would look like another
// line.
void WriteLine(std::string line) {
  std::replace(line.begin(), line.end(), '\n', ' ');
  line += '\n';
  LineOutput::Stderr().Write(line);
}

__attribute__((constructor)) void Begin() {
  pthread_atfork(nullptr, nullptr, [] { g_limit = new Limit{g_limit, {}, {}}; });
}

// Behind everything that is registered with atexit() and has something to say.
__attribute__((destructor)) void End() {
  std::vector<std::string> left_out;
  {
    std::lock_guard lock(g_limit->mutex);
    left_out = g_limit->places.TakeLeftOut();
  }
  if (!g_warnings_silenced.load(std::memory_order_relaxed)) {
    for (const std::string& text : left_out) WriteLine("weft: " + text);
  }
  LineOutput::Stderr().Drain(kPatienceAtEnd);
}

}  // namespace

std::atomic<bool> g_trace_enabled{false};

void SilenceWarnings(bool silent) { g_warnings_silenced.store(silent, std::memory_order_relaxed); }

void LogWarning(std::string_view message, const char* file, int line) {
  if (g_warnings_silenced.load(std::memory_order_relaxed)) return;
  const int error = errno;  // callers log on the way to reporting errno
  std::optional<std::string> text;
  {
    std::lock_guard lock(g_limit->mutex);
    text = g_limit->places.Admit({file, line}, message, std::chrono::steady_clock::now());
  }
  if (text) WriteLine("weft: " + *text);
  errno = error;
}

void LogLines(std::string_view text) {
  if (g_warnings_silenced.load(std::memory_order_relaxed)) return;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    WriteLine("weft: " + std::string(text.substr(from, end - from)));
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
