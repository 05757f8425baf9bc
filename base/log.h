#ifndef BASE_LOG_H_
#define BASE_LOG_H_

#include <atomic>
#include <string>
#include <string_view>

namespace weft {

// Nothing here waits for whoever reads stderr, and any thread may log (base/line_output.h).

// One line to stderr, "weft: MESSAGE", in one write. For what a user must know: each tells what was wrong, with the value, and
// what to do. What one place in the code says many times in a second is left out, and counted (base/warning_limit.h): leave `file` and
// `line` to the compiler.
void LogWarning(std::string_view message, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// A text of several lines, "weft: " before each, all of it.
void LogLines(std::string_view text);
// For tests that provoke warnings by the thousand.
void SilenceWarnings(bool silent);

// WEFT_TRACE=1: one readable line per event with a time stamp. Ask TraceEnabled() before building the text.
extern std::atomic<bool> g_trace_enabled;
inline bool TraceEnabled() { return g_trace_enabled.load(std::memory_order_relaxed); }
void Trace(std::string_view message);

// printf-style helper for both.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace weft

#endif  // BASE_LOG_H_
