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

// The ports of SCTP that this process has, in network byte order: of sockets, and of associations that were closed in order and end without
// one. In IP a packet for any other is another process's. Not thread safe.
class Ports {
 public:
  static constexpr Duration kLeaveLasts = std::chrono::minutes(1);
  static constexpr size_t kMostLeavers = 256;  // each may hold a descriptor; the oldest go first

  // One more socket has it. `addresses`: which its packets may come from; none: any. `held`: what keeps it from other processes, as long as
  // anybody has it. Balanced by Forget or Leave.
  void Add(uint16_t port, const std::vector<SocketAddress>& addresses, std::shared_ptr<void> held);
  // One more, from the same addresses.
  void Share(uint16_t port) { ++ports_[port].sockets; }
  void Forget(uint16_t port);
  // Of an association that was closed in order: the port stays for kLeaveLasts, since it has yet to hear that everything arrived.
  // `awaited`: the peer's addresses, if its last word must be heard before this process may end.
  void Leave(uint16_t port, std::vector<PeerKey> awaited, Time now);
  // Those whose time is over.
  void Expire(Time now);

  bool contains(uint16_t port) const { return ports_.contains(port); }
  // Null: it is not there.
  const std::vector<SocketAddress>* AddressesOf(uint16_t port) const;
  bool any_leaves() const { return !leavers_.empty(); }
  // The peer at that address has said that an association has ended, or that it knows of none.
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
