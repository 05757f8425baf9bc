#ifndef BASE_DEADLINE_H_
#define BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <climits>

namespace weft {

// How long poll() and epoll_wait() are to wait until `when`, rounded up so that they do not return just before it: 0 to
// INT_MAX milliseconds.
inline int MillisecondsUntil(std::chrono::steady_clock::time_point when) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(when - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<long long>(left, 0, INT_MAX));
}

}  // namespace weft

#endif  // BASE_DEADLINE_H_
