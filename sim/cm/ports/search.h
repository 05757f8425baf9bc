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

// The address leads to this host.
bool IsOwn(const transport::SocketAddress& address);

// A queue pair that looks for its peer, or has found it.
struct Search {
  std::weak_ptr<QueuePair> qp;
  uint32_t number = 0;  // its own
  PeerChoice choice;
  std::shared_ptr<Endpoint> endpoint = nullptr;        // of the connection, or of the attempt to open one
  std::shared_ptr<Dialler> dial = nullptr;             // nullptr: the peer opens the connection, or nobody does yet
  std::optional<uint32_t> send_number = std::nullopt;  // sq_psn, once it is in RTS
  bool again = false;                                  // it had found a peer, and that connection ended before it was of any use

  // It is the one of the two that opens the connection.
  bool opens() const;
  // It takes the connection of a request. Of two ends that both dial, the request of the one that opens the connection is answered; the other's
  // waits until it is given up.
  bool answers() const { return endpoint == nullptr || (dial != nullptr && !opens()); }
  // Whether a request from there is of whom it looks for, as far as the address and the number tell ...
  bool Fits(const Wish& wish, const transport::SocketAddress& from) const;
  // ... and whether it knows what the two programs told one another. On InfiniBand the numbers of a direction in which nobody asks for
  // anything need not agree, so that those of one direction do.
  bool Proves(const Wish& wish) const;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_SEARCH_H_
