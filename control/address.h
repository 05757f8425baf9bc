#ifndef CONTROL_ADDRESS_H_
#define CONTROL_ADDRESS_H_

#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <string>

// Where a process that uses Weft listens for `weft stat` and `weft faults`: an abstract Unix socket, which disappears
// with the process and leaves no file. Its name contains the process id. If another process has taken that name, a dot
// and a number follow; the client checks which process answers. A request is one line, for some requests followed by
// data up to the end of the stream. The answer is "ok\n" or "error\n" and a text up to the end of the stream.
namespace weft::control {

inline constexpr char kNamePrefix[] = "weft-control/";
inline constexpr size_t kLongestRequest = 1 << 20;

inline sockaddr_un AddressOf(pid_t pid, socklen_t* length, const std::string& suffix = "") {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = kNamePrefix + std::to_string(pid) + suffix;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // the leading zero makes it abstract
  *length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

}  // namespace weft::control

#endif  // CONTROL_ADDRESS_H_
