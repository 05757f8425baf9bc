#ifndef TRANSPORT_SCTP_SETTINGS_H_
#define TRANSPORT_SCTP_SETTINGS_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "transport/socket_address.h"

namespace weft::transport::sctp {

using Milliseconds = std::chrono::milliseconds;

// Concurrent multipath transfer: new data uses all active paths, not only the primary one.
enum class Multipath : uint8_t {
  // One path at a time (RFC 9260 section 6.4). After a time-out on it, another path is used until a heartbeat is
  // answered there (RFC 7829).
  kFailover,
  kConcurrent,
  // Like kConcurrent, but a path with a time-out gets no new data until a heartbeat is answered.
  kConcurrentPotentiallyFailed,
};

// The settings of an association. With the defaults, a dead path is found within about 1.5 s and a dead peer within
// about 20 s on a network with short round trips. RFC 9260's own defaults (section 16) take minutes.
struct Settings {
  // Our addresses for the association, with port 0; several: multihoming. Empty: Connect() takes the one from which the
  // peer's first address is reached, Listen() the one that it is given.
  std::vector<SocketAddress> local_addresses;

  uint16_t streams_out = 64;  // streams that we ask for, 1 or more; the peer may allow fewer
  uint16_t streams_in = 64;   // streams that we allow, 1 or more. Each costs both ends some 200 bytes

  // Sent in INIT or INIT ACK (RFC 5061 section 4.2.6); nullopt: not sent.
  std::optional<uint32_t> adaptation;

  Milliseconds heartbeat_interval{1000};  // for an idle path, in addition to the RTO; 0: none
  Milliseconds rto_initial{500};          // until a round trip is measured; also for INIT
  Milliseconds rto_min{100};
  Milliseconds rto_max{2000};
  uint16_t path_max_retransmissions = 3;  // a path is inactive after more than this many time-outs in a row
  uint16_t potentially_failed_after = 0;  // after more than this many, another path is used, except with kConcurrent
  // Time-outs in a row over all paths after which the association is lost; also for INIT.
  uint16_t association_max_retransmissions = 12;

  Multipath multipath = Multipath::kFailover;

  uint32_t send_buffer =
      2 << 20;  // bytes of unacknowledged messages; at least the longest message that is not sent in parts
  uint32_t receive_buffer = 2 << 20;  // bytes of messages that the program has not received: the window for the peer

  // Largest IP packet, 576 to 65535 bytes (more than 65400 counts as 65400). 0: what the interfaces of the local
  // addresses carry. Smaller values on the path are not discovered: over UDP the kernel fragments what does not fit.
  uint32_t path_mtu = 0;

  Milliseconds sack_delay{20};  // maximum delay of an acknowledgement (0 to 500)
  uint32_t sack_frequency = 2;  // number of packets after which it is sent at once

  // Connect() and Listen(): others of this process with this option may use the same port and addresses. If two ends
  // connect to each other from the port on which they listen, they get one association; at both ends it is that of
  // Connect().
  bool share_port = false;
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_SETTINGS_H_
