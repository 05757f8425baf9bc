#ifndef BASE_DEADLINE_H_
#define BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <climits>

namespace weft {

// The timeout for poll() and epoll_wait() to wait until `when`: 0 to INT_MAX milliseconds, rounded up so that the call
// does not return just before `when`.
inline int MillisecondsUntil(std::chrono::steady_clock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

}  // namespace weft

#endif  // BASE_DEADLINE_H_
