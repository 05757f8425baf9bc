#ifndef SIM_CM_PORTS_SEARCH_H_
#define SIM_CM_PORTS_SEARCH_H_

#include <cstdint>
#include <memory>
#include <optional>

#include "sim/cm/api.h"
#include "sim/cm/ports/wish.h"
#include "sim/queue_pair/peer.h"
#include "transport/socket_address.h"

namespace weft::sim {

class Dialler;

// Whether `address` is one of this host's.
bool IsOwn(const transport::SocketAddress& address);

// A queue pair that looks for its peer, or has found it.
struct Search {
  std::weak_ptr<QueuePair> qp;
  uint32_t number = 0;  // its own number
  PeerChoice choice;
  std::shared_ptr<Endpoint> endpoint = nullptr;        // of the connection, or of the attempt to open one
  std::shared_ptr<Dialler> dial = nullptr;             // nullptr: the peer opens the connection, or neither end does yet
  std::optional<uint32_t> send_number = std::nullopt;  // sq_psn, once it is in RTS
  bool again = false;                                  // it had found a peer, and that connection ended unused

  // Whether this end is the one that opens the connection.
  bool opens() const;
  // Whether it accepts the connection of a request. If both ends dial, the request of the end that opens the connection
  // is answered; the request of the other end waits until that end gives it up.
  bool answers() const { return endpoint == nullptr || (dial != nullptr && !opens()); }
  // Whether a request from `from` comes from the peer that it looks for, judged by address and number ...
  bool Fits(const Wish& wish, const transport::SocketAddress& from) const;
  // ... and whether the request knows what the two programs exchanged. On InfiniBand the sequence numbers of a
  // direction without requests need not agree; so it is enough if those of one direction do.
  bool Proves(const Wish& wish) const;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_SEARCH_H_
