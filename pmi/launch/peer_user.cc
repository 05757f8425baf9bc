#include "pmi/launch/peer_user.h"

#include <netinet/in.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace weft::pmi {
namespace {

// "0100007F:1F90": the address as the machine reads its four bytes, and the port.
std::string InTable(const transport::SocketAddress& address) {
  char text[16];
  const auto& ip = *reinterpret_cast<const sockaddr_in*>(address.get());
  std::snprintf(text, sizeof(text), "%08X:%04X", ip.sin_addr.s_addr, address.port());
  return text;
}

}  // namespace

std::optional<uid_t> UserOfSocket(std::istream& table, const transport::SocketAddress& own, const transport::SocketAddress& other) {
  if (own.family() != AF_INET || other.family() != AF_INET) return std::nullopt;
  const std::string wanted = InTable(own) + " " + InTable(other) + " ";
  for (std::string line; std::getline(table, line);) {
    if (line.find(wanted) == std::string::npos) continue;
    // sl local_address rem_address st tx_queue:rx_queue tr:tm->when retrnsmt uid ...
    std::istringstream words(line);
    std::string word;
    for (int i = 0; i < 7; ++i) words >> word;
    uid_t user = 0;
    if (words >> user) return user;
  }
  return std::nullopt;
}

std::optional<uid_t> UserOfPeer(int fd) {
  const auto own = transport::SocketAddress::Local(fd), other = transport::SocketAddress::Peer(fd);
  if (!own.is_loopback() || !other.is_loopback()) return std::nullopt;
  std::ifstream table("/proc/net/tcp");
  return UserOfSocket(table, other, own);
}

}  // namespace weft::pmi
