#ifndef CM_RSOCKET_OPTION_VALUES_H_
#define CM_RSOCKET_OPTION_VALUES_H_

#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

namespace weft::rsocket {

// As setsockopt(2). Returns false if `length` is shorter than the option's value.
template <typename Value>
bool LoadOption(const void* from, socklen_t length, Value* into) {
  if (length < sizeof *into) return false;
  std::memcpy(into, from, sizeof *into);
  return true;
}

// As getsockopt(2): a shorter buffer gets the beginning of the value. Returns 0.
template <typename Value>
int StoreOption(const Value& value, void* into, socklen_t* length) {
  const auto part = std::min<socklen_t>(*length, sizeof value);
  std::memcpy(into, &value, part);
  *length = part;
  return 0;
}

// SO_RCVTIMEO and SO_SNDTIMEO (socket(7)). Returns 0, EINVAL or EDOM.
inline int LoadTimeout(const void* from, socklen_t length, timeval* into) {
  timeval given{};
  if (!LoadOption(from, length, &given)) return EINVAL;
  if (given.tv_sec < 0 || given.tv_usec < 0 || given.tv_usec >= 1'000'000) return EDOM;
  *into = given;
  return 0;
}

// Sets a size, clamped to the possible range. Returns 0, or EINVAL for a negative value.
inline int LoadSize(int given, uint32_t least, uint32_t most, uint32_t* into) {
  if (given < 0) return EINVAL;
  *into = std::clamp(static_cast<uint32_t>(given), least, most);
  return 0;
}

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_OPTION_VALUES_H_
