#include "wires/sctp/handshake/incoming.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "wires/sctp/handshake/responder.h"

namespace weft::sctp {
namespace {

using transport::SocketAddress;

constexpr std::chrono::seconds kSweep{5};

SocketAddress First(const std::vector<SocketAddress>& addresses) {
  return addresses.empty() ? SocketAddress() : addresses[0];
}

}  // namespace

// A transport's listener keeps its handler.
class Incoming::WeakHandler final : public transport::ReadyHandler {
 public:
  explicit WeakHandler(std::weak_ptr<transport::ReadyHandler> handler) : handler_(std::move(handler)) {}
  void OnReady(transport::Interest ready) override {
    if (const auto alive = handler_.lock()) alive->OnReady(ready);
  }

 private:
  const std::weak_ptr<transport::ReadyHandler> handler_;
};

void Incoming::Start() {
  const std::lock_guard lock(mutex_);
  for (auto& association : wire_.TakeLeft(local_)) Add(std::move(association));
  listener_->Watch(std::make_shared<WeakHandler>(weak_from_this()));
}

void Incoming::Watch(std::shared_ptr<transport::ReadyHandler> handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::move(handler);
  if (asking_.empty()) return;
  // Those asked before anybody could be told.
  wire_.network().Post([handler = handler_] { handler->OnReady({.read = true}); });
}

void Incoming::OnReady(transport::Interest) {
  Gone gone;
  const std::lock_guard lock(mutex_);
  if (listener_ == nullptr) return;
  while (true) {
    auto accepted = listener_->Accept();
    if (!accepted.ok()) break;
    Add(Association::Make(wire_.network(), wire_.pool(), std::move(*accepted), /*initiator=*/false));
    if (entries_.size() > kMostIdle) gone = TakeIdle(wire_.network().Now());
  }
}

size_t Incoming::associations() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

void Incoming::Add(std::shared_ptr<Association> association) {
  const Association::Lock inner(*association);
  association->SetOnRequest([weak = weak_from_this(), asking = std::weak_ptr(association)] {
    if (const auto self = weak.lock()) self->OnRequest(asking);
  });
  entries_.push_back({std::move(association), wire_.network().Now()});
  SetClock();
}

void Incoming::OnRequest(std::weak_ptr<Association> association) {
  std::shared_ptr<transport::ReadyHandler> handler;
  {
    const std::lock_guard lock(mutex_);
    if (listener_ == nullptr) return;
    asking_.push_back(std::move(association));
    handler = handler_;
  }
  if (handler != nullptr) handler->OnReady({.read = true});
}

Result<std::unique_ptr<llp::Responder>, int> Incoming::Accept() {
  const std::lock_guard lock(mutex_);
  for (; !asking_.empty(); asking_.pop_front()) {
    const auto association = asking_.front().lock();
    if (association == nullptr) continue;
    const Association::Lock inner(*association);
    if (auto seat = association->TakeRequest()) {
      return std::unique_ptr<llp::Responder>(
          std::make_unique<Responder>(wire_, std::move(seat), First(association->local_addresses()), First(association->peer_addresses())));
    }
  }
  return EAGAIN;
}

void Incoming::Close() {
  std::vector<std::shared_ptr<Association>> all;
  const std::lock_guard lock(mutex_);
  for (Entry& entry : entries_) {
    const Association::Lock inner(*entry.association);
    entry.association->SetOnRequest(nullptr);
    all.push_back(std::move(entry.association));
  }
  entries_.clear();
  asking_.clear();
  wire_.Leave(local_, all);
  listener_.reset();
  handler_.reset();
}

// Those that are over, and those that have been idle for too long, or longest of too many.
Incoming::Gone Incoming::TakeIdle(transport::Time now) {
  Gone gone;
  size_t idle = 0;
  for (Entry& entry : entries_) {
    const Association::Lock inner(*entry.association);
    if (entry.association->sessions() != 0) {
      entry.idle_since = {};
    } else {
      if (entry.idle_since == transport::Time{}) entry.idle_since = now;
      ++idle;
    }
  }
  std::erase_if(entries_, [&](Entry& entry) {
    bool over;
    {
      const Association::Lock inner(*entry.association);
      over = entry.association->state() == Association::State::kOver;
    }
    const bool is_idle = entry.idle_since != transport::Time{};
    const bool go = over || (is_idle && (now - entry.idle_since >= kIdleLimit || idle > kMostIdle));
    if (is_idle && go) --idle;
    if (go) gone.push_back(std::move(entry.association));
    return go;
  });
  return gone;
}

void Incoming::SetClock() {
  if (clock_runs_ || entries_.empty()) return;
  clock_runs_ = true;
  wire_.network().RunAt(wire_.network().Now() + kSweep, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->Sweep();
  });
}

void Incoming::Sweep() {
  Gone gone;
  const std::lock_guard lock(mutex_);
  clock_runs_ = false;
  gone = TakeIdle(wire_.network().Now());
  SetClock();
}

}  // namespace weft::sctp
