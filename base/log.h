#ifndef BASE_LOG_H_
#define BASE_LOG_H_

#include <atomic>
#include <string>
#include <string_view>

namespace weft {

// One line to stderr, "weft: MESSAGE", in one write. For what a user must know: each tells what was wrong, with the value, and
// what to do.
void LogWarning(std::string_view message);
// The same for a text of several lines.
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
