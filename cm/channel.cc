#include "cm/channel.h"

#include <cerrno>
#include <utility>

#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {

std::shared_ptr<Channel> Channel::Create() {
  std::shared_ptr<Channel> channel(new Channel);
  if (channel->queue_.fd() < 0) return nullptr;
  channel->fd = channel->queue_.fd();
  channel->self_ = channel;
  return channel;
}

void Channel::Push(std::unique_ptr<Event>& event) {
  if (!closed_) queue_.Push(std::move(event));
}

std::unique_ptr<Event> Channel::Take() {
  auto event = queue_.Pop();
  return event ? *std::move(event) : nullptr;
}

std::vector<std::unique_ptr<Event>> Channel::Extract(const Identifier* owner) {
  std::vector<std::unique_ptr<Event>> taken;
  queue_.Remove([&](std::unique_ptr<Event>& event) {
    if (owner != nullptr && event->owner.get() != owner) return false;
    taken.push_back(std::move(event));
    return true;
  });
  return taken;
}

void Channel::Close() {
  closed_ = true;
  Extract(nullptr);
  self_.reset();  // may destroy this
}

int GetEvent(Channel& channel, rdma_cm_event** event) {
  const auto keep = channel.shared_from_this();  // another thread may destroy it while this one waits
  for (;;) {
    std::unique_ptr<Event> next = channel.Take();
    if (next == nullptr) return -1;
    Identifier& owner = *next->owner;
    if (!owner.BeginDelivery(*next)) continue;
    *event = next.release();
    return 0;
  }
}

}  // namespace weft::cm

using weft::cm::Channel;
using weft::cm::Event;
using weft::cm::Return;

WEFT_CM_EXPORT rdma_event_channel* rdma_create_event_channel() { return Channel::Create().get(); }

WEFT_CM_EXPORT void rdma_destroy_event_channel(rdma_event_channel* channel) {
  if (channel == nullptr) return;
  const auto keep = Channel::From(channel)->shared_from_this();
  keep->Close();
}

WEFT_CM_EXPORT int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event) {
  if (channel == nullptr || event == nullptr) return Return(EINVAL);
  return weft::cm::GetEvent(*Channel::From(channel), event);
}

WEFT_CM_EXPORT int rdma_ack_cm_event(rdma_cm_event* event) {
  if (event == nullptr) return Return(EINVAL);
  const std::unique_ptr<Event> acknowledged(static_cast<Event*>(event));
  acknowledged->owner->Acknowledge();
  return 0;
}

WEFT_CM_EXPORT const char* rdma_event_str(rdma_cm_event_type event) {
  static constexpr const char* kNames[] = {
      "RDMA_CM_EVENT_ADDR_RESOLVED",  "RDMA_CM_EVENT_ADDR_ERROR",      "RDMA_CM_EVENT_ROUTE_RESOLVED",
      "RDMA_CM_EVENT_ROUTE_ERROR",    "RDMA_CM_EVENT_CONNECT_REQUEST", "RDMA_CM_EVENT_CONNECT_RESPONSE",
      "RDMA_CM_EVENT_CONNECT_ERROR",  "RDMA_CM_EVENT_UNREACHABLE",     "RDMA_CM_EVENT_REJECTED",
      "RDMA_CM_EVENT_ESTABLISHED",    "RDMA_CM_EVENT_DISCONNECTED",    "RDMA_CM_EVENT_DEVICE_REMOVAL",
      "RDMA_CM_EVENT_MULTICAST_JOIN", "RDMA_CM_EVENT_MULTICAST_ERROR", "RDMA_CM_EVENT_ADDR_CHANGE",
      "RDMA_CM_EVENT_TIMEWAIT_EXIT",
  };
  static_assert(sizeof kNames / sizeof kNames[0] == RDMA_CM_EVENT_TIMEWAIT_EXIT + 1);
  const auto index = static_cast<unsigned>(event);
  return index <= RDMA_CM_EVENT_TIMEWAIT_EXIT ? kNames[index] : "UNKNOWN EVENT";
}
