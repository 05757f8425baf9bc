#include "cm/channel.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "cm/devices.h"
#include "cm/export.h"
#include "cm/identifier.h"

namespace weft::cm {

namespace {

// Keeps the memory of channels that were closed lately. Programs whose main thread destroys the channel that their event thread
// loops on (rping, as Debian 12 has it) let that thread's next call race with it; on hardware the call nearly always wins.
class ClosedChannels {
 public:
  static ClosedChannels& Instance() {
    static auto* const instance = new ClosedChannels;  // for threads that outlive main
    return *instance;
  }
  void Keep(std::shared_ptr<Channel> channel) {
    std::lock_guard lock(mutex_);
    std::swap(kept_[next_++ % kept_.size()], channel);
  }

 private:
  std::mutex mutex_;
  std::array<std::shared_ptr<Channel>, 16> kept_;
  size_t next_ = 0;
};

}  // namespace

std::shared_ptr<Channel> Channel::Create() {
  std::shared_ptr<Channel> channel(new Channel);
  channel->fd = channel->queue_->fd();
  if (channel->fd < 0) return nullptr;
  channel->self_ = channel;
  return channel;
}

std::shared_ptr<Channel::Queue> Channel::queue() const {
  std::lock_guard lock(mutex_);
  return queue_;
}

bool Channel::closed() const { return queue() == nullptr; }

void Channel::Push(std::unique_ptr<Event>& event) {
  std::lock_guard lock(mutex_);
  if (queue_ != nullptr) queue_->Push(std::move(event));
}

std::unique_ptr<Event> Channel::Take() {
  if (const auto waiting = queue()) {
    auto event = waiting->Pop();
    return event ? *std::move(event) : nullptr;
  }
  {
    std::lock_guard lock(mutex_);
    if (!blocking_) {
      errno = EBADF;
      return nullptr;
    }
  }
  LogWarning("rdma_get_cm_event waits on an event channel that was destroyed");
  pause();  // errno: EINTR
  return nullptr;
}

std::vector<std::unique_ptr<Event>> Channel::Extract(const Identifier* owner) {
  std::vector<std::unique_ptr<Event>> taken;
  const auto waiting = queue();
  if (waiting == nullptr) return taken;
  waiting->Remove([&](std::unique_ptr<Event>& event) {
    if (owner != nullptr && event->owner.get() != owner) return false;
    taken.push_back(std::move(event));
    return true;
  });
  return taken;
}

void Channel::Close() {
  std::shared_ptr<Queue> last;
  std::shared_ptr<Channel> self;  // destroyed at the end: may destroy this
  std::vector<std::unique_ptr<Event>> dropped;
  {
    std::lock_guard lock(mutex_);
    if (queue_ == nullptr) return;
    blocking_ = (fcntl(queue_->fd(), F_GETFL) & O_NONBLOCK) == 0;
    last = std::move(queue_);
    self = std::move(self_);
  }
  last->Remove([&](std::unique_ptr<Event>& event) {
    dropped.push_back(std::move(event));
    return true;
  });
  ClosedChannels::Instance().Keep(std::move(self));
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

// With no RDMA device a machine has no rdma_cm either, and a server would wait for ever for clients that cannot come.
WEFT_CM_EXPORT rdma_event_channel* rdma_create_event_channel() {
  if (!weft::cm::Devices::Process().Exist()) return nullptr;
  return Channel::Create().get();
}

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
      "RDMA_CM_EVENT_TIMEWAIT_EXIT",  "RDMA_CM_EVENT_ADDRINFO_RESOLVED", "RDMA_CM_EVENT_ADDRINFO_ERROR",
      "RDMA_CM_EVENT_USER",           "RDMA_CM_EVENT_INTERNAL",
  };
  static_assert(sizeof kNames / sizeof kNames[0] == weft::cm::kInternalEvent + 1);
  const auto index = static_cast<unsigned>(event);
  return index <= weft::cm::kInternalEvent ? kNames[index] : "UNKNOWN EVENT";
}
