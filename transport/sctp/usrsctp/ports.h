#ifndef TRANSPORT_SCTP_USRSCTP_PORTS_H_
#define TRANSPORT_SCTP_USRSCTP_PORTS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/network.h"
#include "transport/sctp/usrsctp/peers.h"
#include "transport/socket_address.h"

namespace weft::transport::sctp {

// The SCTP ports of this process, in network byte order: those of sockets, and of associations that were closed in
// order and end without a socket. A packet over IP for any other port belongs to another process. Not thread safe.
class Ports {
 public:
  static constexpr Duration kLeaveLasts = std::chrono::minutes(1);
  static constexpr size_t kMostLeavers = 256;  // each may hold a descriptor; the oldest are dropped first

  // Another socket uses the port. `addresses`: where its packets may come from; none: anywhere. `held`: keeps the port
  // from other processes while anyone has it. Balanced by Forget or Leave.
  void Add(uint16_t port, const std::vector<SocketAddress>& addresses, std::shared_ptr<void> held);
  // One more, with the same addresses.
  void Share(uint16_t port) { ++ports_[port].sockets; }
  void Forget(uint16_t port);
  // An association was closed in order. The port stays for kLeaveLasts, because the association has yet to learn that
  // everything arrived. `awaited`: the peer's addresses, if its last message must arrive before this process may end.
  void Leave(uint16_t port, std::vector<PeerKey> awaited, Time now);
  // Removes those whose time is over.
  void Expire(Time now);

  bool contains(uint16_t port) const { return ports_.contains(port); }
  // nullptr: the port is not in use.
  const std::vector<SocketAddress>* AddressesOf(uint16_t port) const;
  bool any_leaves() const { return !leavers_.empty(); }
  // The peer at that address has reported that an association has ended, or that it knows of none.
  void NoteLastWord(const PeerKey& peer);
  bool awaits_last_word() const;

 private:
  struct Port {
    int sockets = 0;
    int leavers = 0;
    std::vector<SocketAddress> addresses;
    std::shared_ptr<void> held;
  };
  struct Leaver {
    uint16_t port;
    std::vector<PeerKey> awaited;
    Time until;
  };
  using Table = std::unordered_map<uint16_t, Port>;

  void DropIfUnused(Table::iterator port);
  void DropOldestLeaver();

  Table ports_;
  std::deque<Leaver> leavers_;  // in the order of their times
};

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_PORTS_H_
