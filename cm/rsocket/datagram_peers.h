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

// A peer to which datagrams are sent, or from which they come.
struct DatagramPeer {
  DatagramPeer() = default;
  ~DatagramPeer() {
    if (handle != nullptr) ibv_destroy_ah(handle);
  }
  DatagramPeer(const DatagramPeer&) = delete;
  DatagramPeer& operator=(const DatagramPeer&) = delete;

  sockaddr_storage address{};  // in the network's family: IPv4 for an IPv4-mapped address
  DatagramLink* link = nullptr;
  ibv_ah* handle = nullptr;
  sockaddr_storage own{};                          // our address on the way to the peer, with our port
  uint32_t queue_pair = 0;                         // 0: unknown
  std::optional<Clock::time_point> unheard_since;  // since then it was sent datagrams by RDMA, and did not answer
};

// The peers that a socket knows, at most kMost. Every process that sends a datagram becomes one. If there are too many,
// the one that was unused longest is removed; it is looked up again when needed. Holding a shared_ptr keeps a peer
// alive. Guarded by the owner.
class DatagramPeers {
 public:
  static constexpr size_t kMost = 4096;

  // nullptr: unknown. The peer counts as used now.
  std::shared_ptr<DatagramPeer> Find(const std::string& key) {
    const auto found = peers_.find(key);
    if (found == peers_.end()) return nullptr;
    order_.splice(order_.begin(), order_, found->second);
    return found->second->second;
  }
  // `key` is not known yet. `keep`: the key of a peer that must not be removed, or empty.
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
