#ifndef TRANSPORT_SCTP_USRSCTP_PEERS_H_
#define TRANSPORT_SCTP_USRSCTP_PEERS_H_

#include <netinet/in.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "transport/network.h"
#include "transport/socket_address.h"

namespace weft::transport::sctp {

// One address of an association's peer, as in packets.
struct PeerKey {
  uint8_t host[16] = {};                   // IPv4: IPv4-mapped
  uint16_t peer_port = 0, local_port = 0;  // of SCTP, network byte order

  PeerKey(const SocketAddress& address, uint16_t peer, uint16_t local) : peer_port(peer), local_port(local) {
    if (address.family() == AF_INET) {
      host[10] = host[11] = 0xff;
      std::memcpy(host + 12, &reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr, 4);
    } else {
      std::memcpy(host, &reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr, 16);
    }
  }
  bool operator==(const PeerKey&) const = default;
};

struct PeerKeyHash {
  size_t operator()(const PeerKey& key) const {
    uint64_t high, low;
    std::memcpy(&high, key.host, 8);
    std::memcpy(&low, key.host + 8, 8);
    const uint64_t ports = uint64_t{key.peer_port} << 16 | key.local_port;
    uint64_t hash = (high ^ 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    hash = (hash ^ hash >> 29 ^ low) * 0x94d049bb133111eb;
    return static_cast<size_t>((hash ^ hash >> 32 ^ ports) * 0x9e3779b97f4a7c15 >> 7);
  }
};

// The state and counters of a peer's address.
struct PeerRecord {
  uint16_t udp_port = 0;  // host byte order; packets from other ports are dropped
  uint64_t packets_out = 0, bytes_out = 0, packets_in = 0, bytes_in = 0;
  uint32_t failures = 0;
  bool one_of_several = false;
  bool inactive = false;     // usrsctp considers it inactive, and
  bool passed_over = false;  // another address of the peer is active: this one gets no DATA, but
  transport::Time ask_at{};  // a HEARTBEAT from time to time
  bool broke_rules = false;  // the association was aborted because of that
  uint32_t cumulative_ack = 0;  // in the last SACK from it
  // The last INIT from this address, which may restart the association: its number among all received packets (0:
  // none), and its adaptation indication, which usrsctp does not report in that case.
  uint64_t init_packet = 0;
  std::optional<uint32_t> init_adaptation;
};

// The cause in an ABORT that says that another process of the same host has the SCTP port: "restart of an association
// with new addresses", RFC 9260 section 3.3.10.11.
inline constexpr uint8_t kPortIsAnothers = 11;

using PeerTable = std::unordered_map<PeerKey, PeerRecord, PeerKeyHash>;

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_PEERS_H_
