#ifndef BASE_LOG_H_
#define BASE_LOG_H_

#include <atomic>
#include <string>
#include <string_view>

namespace weft {

// Logging never waits for the reader of stderr, and any thread may log (base/line_output.h).

// Writes one line "weft: MESSAGE" to stderr, in one write. For problems that the user must know: each message names
// what was wrong, with the value, and what to do. If one place in the code logs many times in a second, the excess is
// dropped and counted (base/warning_limit.h). The compiler fills in `file` and `line`.
void LogWarning(std::string_view message, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// Writes all lines of a text, each with "weft: " in front.
void LogLines(std::string_view text);
// For tests that provoke thousands of warnings.
void SilenceWarnings(bool silent);

// WEFT_TRACE=1: one readable line per event with a time stamp. Ask TraceEnabled() before building the text.
extern std::atomic<bool> g_trace_enabled;
inline bool TraceEnabled() { return g_trace_enabled.load(std::memory_order_relaxed); }
void Trace(std::string_view message);

// Formats like printf, for both kinds of output.
std::string Format(const char* format, ...) __attribute__((format(printf, 1, 2)));

}  // namespace weft

#endif  // BASE_LOG_H_
