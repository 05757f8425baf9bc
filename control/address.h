#ifndef CONTROL_ADDRESS_H_
#define CONTROL_ADDRESS_H_

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

// Where a process that uses Weft listens for `weft stat` and `weft faults`: an abstract unix socket (it goes with the process, and
// no file stays behind) named by the process id, with a dot and a number behind it where somebody else has taken that name: who asks looks
// at who answers. A request is one line, and for some what follows it, up to the end of the stream; the
// answer is "ok\n" or "error\n" and a text up to the end.
namespace weft::control {

inline constexpr char kNamePrefix[] = "weft-control/";
inline constexpr size_t kLongestRequest = 1 << 20;

inline sockaddr_un AddressOf(pid_t pid, socklen_t* length, const std::string& suffix = "") {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = kNamePrefix + std::to_string(pid) + suffix;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the zero in front makes it abstract
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace weft::control

#endif  // CONTROL_ADDRESS_H_
