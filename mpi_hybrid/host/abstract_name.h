#ifndef MPI_HYBRID_HOST_ABSTRACT_NAME_H_
#define MPI_HYBRID_HOST_ABSTRACT_NAME_H_

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "base/hex.h"

namespace weft::mpi::host {

// An abstract name of a unix socket (unix(7)): there is no file, and the name is gone when the socket is closed.
struct AbstractName {
  sockaddr_un address{};
  socklen_t length = 0;

  // `prefix` has at most 32 characters, `nonce` at most 16 bytes.
  AbstractName(std::string_view prefix, std::span<const uint8_t> nonce) {
    const std::string text = std::string(prefix) + HexOf(nonce);
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, text.data(), text.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_ABSTRACT_NAME_H_
