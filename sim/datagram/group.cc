#include "sim/datagram/group.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "sim/device/limits.h"
#include "transport/datagram_capture.h"

namespace weft::sim {

bool DatagramGroup::Add(DatagramReceiver* receiver) {
  std::lock_guard lock(receive_mutex_);
  if (std::find(receivers_.begin(), receivers_.end(), receiver) != receivers_.end()) return false;
  receivers_.push_back(receiver);
  return true;
}

bool DatagramGroup::Remove(DatagramReceiver* receiver) {
  std::lock_guard lock(receive_mutex_);
  return std::erase(receivers_, receiver) != 0;
}

bool DatagramGroup::empty() {
  std::lock_guard lock(receive_mutex_);
  return receivers_.empty();
}

void DatagramGroup::Dispatch(const ReceivedDatagram& datagram) {
  if (datagram.header.destination != kGroupQueuePair) return;
  for (DatagramReceiver* receiver : receivers_) receiver->OnDatagram(datagram);
}

Result<std::shared_ptr<DatagramGroup>, int> DatagramGroups::Attach(DatagramReceiver* receiver,
                                                                   const transport::SocketAddress& group,
                                                                   uint32_t interface) {
  std::lock_guard lock(mutex_);
  for (const auto& joined : groups_) {
    if (!joined->Is(group, interface)) continue;
    if (!joined->Add(receiver)) return EINVAL;
    return joined;
  }
  if (groups_.size() >= kMaxGroups) return ENOBUFS;
  transport::SocketAddress local = group;
  local.set_port(kGroupUdpPort);
  auto socket = network_.OpenDatagram(local, {.only_v6 = true, .shared = true, .group = group, .interface = interface});
  if (!socket.ok()) return socket.error();
  auto captured = transport::CaptureIfAsked(std::move(socket.value()), DescribeDatagram);
  auto joined = std::make_shared<DatagramGroup>(network_, std::move(captured), group, interface);
  joined->Add(receiver);
  joined->Start();
  groups_.push_back(joined);
  return joined;
}

int DatagramGroups::Detach(DatagramReceiver* receiver, const transport::SocketAddress& group, uint32_t interface) {
  std::lock_guard lock(mutex_);
  for (auto it = groups_.begin(); it != groups_.end(); ++it) {
    if (!(*it)->Is(group, interface)) continue;
    if (!(*it)->Remove(receiver)) return EINVAL;
    if ((*it)->empty()) {
      (*it)->Close();
      groups_.erase(it);
    }
    return 0;
  }
  return EINVAL;
}

}  // namespace weft::sim
