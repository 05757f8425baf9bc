#ifndef BASE_CHECK_H_
#define BASE_CHECK_H_

#include <cstdio>
#include <cstdlib>

namespace weft {

[[noreturn]] inline void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "weft: %s:%d: internal invariant broken: %s\n", file, line, condition);
  std::abort();
}

}  // namespace weft

// For invariants that only Weft itself can break. What a peer or a program can cause is a value, never a CHECK.
#define WEFT_CHECK(condition)                                        \
  do {                                                               \
    if (!(condition)) [[unlikely]]                                   \
      ::weft::CheckFailed(__FILE__, __LINE__, #condition);           \
  } while (false)

#endif  // BASE_CHECK_H_
