#include "transport/tcp_watch_group.h"

#include <sys/epoll.h>

#include <utility>

#include "transport/tcp_network.h"

namespace weft::transport {
namespace {

// Calls `tell(handler, ready)` for what is ready in the group's set; whether anything was.
template <typename Tell>
bool DispatchReady(WatchTable& watches, WatchTable::Group& group, const Tell& tell) {
  epoll_event storage[64];
  const auto events = group.set.Poll(storage);
  for (const epoll_event& event : events) {
    const WatchTable::Hit hit = watches.Find(event);
    if (hit.handler != nullptr) tell(*hit.handler, hit.ready);
  }
  return !events.empty();
}

}  // namespace

// What the network's own thread hears of the group as a whole. The watch keeps it after the group has gone.
class TcpWatchGroup::Relay final : public ReadyHandler {
 public:
  explicit Relay(WatchTable& watches) : watches_(watches) {}
  void OnReady(Interest) override {
    DispatchReady(watches_, *group_, [](ReadyHandler& handler, Interest ready) { handler.OnReady(ready); });
  }
  WatchTable& watches() { return watches_; }
  const std::shared_ptr<WatchTable::Group>& group() { return group_; }

 private:
  WatchTable& watches_;
  const std::shared_ptr<WatchTable::Group> group_ = std::make_shared<WatchTable::Group>();
};

std::unique_ptr<WatchGroup> TcpWatchGroup::Open(TcpNetwork& network, WatchTable& watches) {
  auto relay = std::make_shared<Relay>(watches);
  if (relay->group()->set.Open() != 0) return nullptr;
  const auto watch = watches.AddGroup(*relay->group(), relay);
  if (!watch.ok()) return nullptr;
  return std::unique_ptr<WatchGroup>(new TcpWatchGroup(network, std::move(relay), *watch));
}

TcpWatchGroup::TcpWatchGroup(TcpNetwork& network, std::shared_ptr<Relay> relay, WatchId watch)
    : network_(network), relay_(std::move(relay)), watch_(watch) {}

TcpWatchGroup::~TcpWatchGroup() {
  if (!network_.InThisProcess()) return;  // the epoll instances are the parent's, too
  relay_->watches().Dissolve(relay_->group());
  network_.Unwatch(watch_);
}

bool TcpWatchGroup::Add(WatchId id) { return network_.InThisProcess() && relay_->watches().Join(id, relay_->group()) == 0; }

bool TcpWatchGroup::Drive(bool spinning) {
  if (!network_.InThisProcess()) return false;
  const bool any = DispatchReady(relay_->watches(), *relay_->group(), [spinning](ReadyHandler& handler, Interest ready) {
    handler.OnDriven(ready, spinning);
  });
  if (spinning) Lend();
  return any;
}

void TcpWatchGroup::Lend() { network_.Lend(watch_); }

}  // namespace weft::transport
