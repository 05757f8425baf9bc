#ifndef TRANSPORT_TCP_WATCH_GROUP_H_
#define TRANSPORT_TCP_WATCH_GROUP_H_

#include <memory>

#include "transport/network.h"
#include "transport/watch_table.h"

namespace weft::transport {

class TcpNetwork;

// A group of a TcpNetwork: an epoll instance that has the watches in place of the network's epoll instance, which
// watches this instance. The network outlives it.
class TcpWatchGroup final : public WatchGroup {
 public:
  // nullptr: no descriptor or memory is available.
  static std::unique_ptr<WatchGroup> Open(TcpNetwork& network, WatchTable& watches);
  ~TcpWatchGroup() override;

  bool Add(WatchId id) override;
  bool Drive(bool spinning) override;
  void Lend() override;

 private:
  class Relay;
  TcpWatchGroup(TcpNetwork& network, std::shared_ptr<Relay> relay, WatchId watch);

  TcpNetwork& network_;
  const std::shared_ptr<Relay> relay_;
  const WatchId watch_;  // of the group itself
};

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_WATCH_GROUP_H_
