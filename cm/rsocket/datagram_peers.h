#ifndef CM_RSOCKET_DATAGRAM_PEERS_H_
#define CM_RSOCKET_DATAGRAM_PEERS_H_

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstdint>
#include <iterator>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "cm/rsocket/waiting.h"

namespace weft::rsocket {

class DatagramLink;

// Whoever datagrams go to or come from.
struct DatagramPeer {
  DatagramPeer() = default;
  ~DatagramPeer() {
    if (handle != nullptr) ibv_destroy_ah(handle);
  }
  DatagramPeer(const DatagramPeer&) = delete;
  DatagramPeer& operator=(const DatagramPeer&) = delete;

  sockaddr_storage address{};  // of the family that the network has: IPv4 for a mapped one
  DatagramLink* link = nullptr;
  ibv_ah* handle = nullptr;
  sockaddr_storage own{};                          // the address from which it is reached, with our port
  uint32_t queue_pair = 0;                         // 0: not known
  std::optional<Clock::time_point> unheard_since;  // it was sent something by RDMA, and nothing came back
};

// The peers that a socket knows, kMost of them: whoever sends it anything becomes one, so that of more the longest
// unused is forgotten, and asked again when it is needed. Who holds one keeps it alive. Guarded by its owner.
class DatagramPeers {
 public:
  static constexpr size_t kMost = 4096;

  // nullptr: not known. The peer counts as used.
  std::shared_ptr<DatagramPeer> Find(const std::string& key) {
    const auto found = peers_.find(key);
    if (found == peers_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->second;
  }
  // `key` is not known. `keep`: key of one that is not forgotten, or empty.
  void Add(const std::string& key, std::shared_ptr<DatagramPeer> peer, const std::string& keep) {
    if (peers_.size() >= kMost) {
      auto oldest = std::prev(order_.end());
      if (oldest->first == keep) --oldest;
      peers_.erase(oldest->first);
      order_.erase(oldest);
    }
    order_.emplace_front(key, std::move(peer));
    peers_.emplace(key, order_.begin());
  }
  void Clear() {
    peers_.clear();
    order_.clear();
  }
  size_t size() const { return peers_.size(); }

 private:
  using Order = std::list<std::pair<std::string, std::shared_ptr<DatagramPeer>>>;  // the last used first
  Order order_;
  std::unordered_map<std::string, Order::iterator> peers_;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DATAGRAM_PEERS_H_
