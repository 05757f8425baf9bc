#ifndef SIM_DATAGRAM_GROUP_H_
#define SIM_DATAGRAM_GROUP_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "sim/datagram/port.h"
#include "transport/network.h"

namespace weft::sim {

// One IP group on one interface, joined for the queue pairs of this process that are attached to it. Other processes of
// the host have their own sockets on the same UDP port.
class DatagramGroup final : public DatagramSocketOwner {
 public:
  DatagramGroup(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket,
                const transport::SocketAddress& group, uint32_t interface)
      : DatagramSocketOwner(network, std::move(socket)), group_(group), interface_(interface) {}

  using DatagramSocketOwner::Start;
  bool Is(const transport::SocketAddress& group, uint32_t interface) const {
    return group_.SameHost(group) && interface_ == interface;
  }
  bool Add(DatagramReceiver* receiver);     // false: it is already a member
  bool Remove(DatagramReceiver* receiver);  // false: it was not a member. It gets no datagram after this call
  bool empty();
  void Close() { Stop(); }

 private:
  void Dispatch(const ReceivedDatagram& datagram) override;

  const transport::SocketAddress group_;
  const uint32_t interface_;
  std::vector<DatagramReceiver*> receivers_;  // guarded by receive_mutex_
};

// The groups that this RNIC has joined. Thread safe.
class DatagramGroups {
 public:
  explicit DatagramGroups(transport::Network& network) : network_(network) {}

  // Returns the joined group, to be driven inline. Errors: EINVAL (already a member), ENODEV, ENOBUFS (more groups than
  // kMaxGroups or the system allows), EADDRINUSE (another program uses kGroupUdpPort) ...
  Result<std::shared_ptr<DatagramGroup>, int> Attach(DatagramReceiver* receiver, const transport::SocketAddress& group,
                                                     uint32_t interface);
  // EINVAL: it is not a member.
  int Detach(DatagramReceiver* receiver, const transport::SocketAddress& group, uint32_t interface);

 private:
  transport::Network& network_;
  std::mutex mutex_;  // guards groups_
  std::vector<std::shared_ptr<DatagramGroup>> groups_;
};

}  // namespace weft::sim

#endif  // SIM_DATAGRAM_GROUP_H_
