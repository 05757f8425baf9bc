#ifndef TRANSPORT_SCTP_SETTINGS_H_
#define TRANSPORT_SCTP_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/socket_address.h"

namespace weft::transport::sctp {

using Milliseconds = std::chrono::milliseconds;

// Concurrent multipath transfer: new data goes over all active paths, not over the primary alone.
enum class Multipath : uint8_t {
  // One path at a time (RFC 9260 section 6.4), and another as soon as something timed out on it, until a heartbeat is
  // answered there (RFC 7829).
  kFailover,
  kConcurrent,
  // The same, and a path on which something timed out gets no new data until a heartbeat is answered.
  kConcurrentPotentiallyFailed,
};

// How an association is to be. The defaults find a dead path within about 1.5 s and a dead peer within about 20 s on a
// network whose round trips are short; RFC 9260's own (section 16) take minutes.
struct Settings {
  // Ours that the association uses. Ports 0, all of them a host's own; several: multihoming. Empty: Connect() takes the
  // one from which the peer's first is reached, Listen() the one that it is given.
  std::vector<SocketAddress> local_addresses;

  uint16_t streams_out = 64;  // that we ask for, 1 or more; the peer may allow fewer
  uint16_t streams_in = 64;   // that we allow, 1 or more. A stream costs both ends some 200 bytes

  // In INIT or INIT ACK (RFC 5061 section 4.2.6); nullopt: none is sent.
  std::optional<uint32_t> adaptation;

  Milliseconds heartbeat_interval{1000};  // of a path that is idle, besides the RTO; 0: none
  Milliseconds rto_initial{500};          // until a round trip was measured; of INIT too
  Milliseconds rto_min{100};
  Milliseconds rto_max{2000};
  uint16_t path_max_retransmissions = 3;  // timeouts in a row after which a path is inactive
  uint16_t potentially_failed_after = 0;  // the same, after which another is used, but for kConcurrent: more than this
  uint16_t association_max_retransmissions =
      12;  // over all paths in a row, after which the association is lost; of INIT too

  Multipath multipath = Multipath::kFailover;

  uint32_t send_buffer =
      2 << 20;  // bytes of messages not yet acknowledged; at least the longest message that is not sent in parts
  uint32_t receive_buffer =
      2 << 20;  // bytes of messages not yet received by the program: the window that the peer sees

  // Largest IP packet, 576 to 65535 bytes (more than 65400 is as much as that); 0: what the interfaces of the local
  // addresses carry. There is no discovery of smaller ones on the way: over UDP the kernel fragments what does not fit.
  uint32_t path_mtu = 0;

  Milliseconds sack_delay{20};  // how long an acknowledgement may wait (0 to 500)
  uint32_t sack_frequency = 2;  // packets after which it does not

  // Connect() and Listen(): others of this process that say so too may have the same port and addresses. Two ends that
  // connect to each other from the port on which they listen then get one association, on both sides that of Connect().
  bool share_port = false;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_SETTINGS_H_
