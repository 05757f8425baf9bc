#ifndef IMPI_RUN_LOCAL_ADDRESS_H_
#define IMPI_RUN_LOCAL_ADDRESS_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

namespace weft::impi {

// The address of a Unix socket in the abstract namespace (unix(7)). As text: "@" and its name. Nothing of it is left in the file system when its socket ends.
class LocalAddress {
 public:
  // nullopt: another form, or too long.
  static std::optional<LocalAddress> Parse(std::string_view text) {
    LocalAddress address;
    if (text.size() < 2 || text.size() > sizeof address.name_.sun_path || text[0] != '@') return std::nullopt;
    std::memcpy(address.name_.sun_path + 1, text.data() + 1, text.size() - 1);
    address.length_ = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + text.size());
    return address;
  }

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name_); }
  socklen_t length() const { return length_; }

 private:
  LocalAddress() { name_.sun_family = AF_UNIX; }

  sockaddr_un name_{};
  socklen_t length_ = 0;
};

}  // namespace weft::impi

#endif  // IMPI_RUN_LOCAL_ADDRESS_H_
