#include "sim/cm/listener.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/log.h"

namespace weft::sim {
namespace {

// Connections that have not sent their whole request yet, and those that have and of which the program was not
// told, since its backlog is full. Beyond this the one that has waited longest gives way, so that silent peers neither
// use up the process nor keep others out.
constexpr size_t kMostSilent = 2048, kMostUntold = 4096;
constexpr int kAcceptsPerTurn = 64;

constexpr const char* kThatAreSilent = "that have not sent a request";
constexpr const char* kThatWait = "whose requests wait for the program";

}  // namespace

ListenerImpl::ListenerImpl(const Surroundings& around, std::unique_ptr<llp::Listener> sessions, int backlog,
                           std::shared_ptr<CmObserver> observer)
    : around_(around),
      local_(sessions->LocalAddress()),
      backlog_(static_cast<size_t>(std::max(backlog, 1))),
      sessions_(std::move(sessions)),
      observer_(std::move(observer)) {}

ListenerImpl::~ListenerImpl() { Close(); }

void ListenerImpl::Start() {
  std::lock_guard lock(mutex_);
  sessions_->Watch(shared_from_this());
}

void ListenerImpl::Close() {
  std::unique_ptr<llp::Listener> sessions;
  std::vector<std::shared_ptr<EndpointImpl>> silent, untold;
  {
    std::lock_guard wait_for_delivery(delivery_mutex_);
    std::lock_guard lock(mutex_);
    sessions = std::move(sessions_);
    observer_.reset();
    silent = silent_.TakeAll();
    untold = untold_.TakeAll();
  }
  for (const auto& endpoint : silent) endpoint->Close();
  for (const auto& endpoint : untold) endpoint->Close();
}

void ListenerImpl::OnReady(transport::Interest) {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    if (!AcceptOne()) return;
  }
}

void ListenerImpl::OnRequest(std::shared_ptr<EndpointImpl> endpoint) {
  std::shared_ptr<EndpointImpl> known, oldest;
  {
    std::lock_guard lock(mutex_);
    known = silent_.Take(endpoint.get());
    if (sessions_ != nullptr) {
      if (untold_.size() >= kMostUntold) oldest = untold_.TakeOldest();
      untold_.Add(std::move(endpoint));
    }
  }
  if (oldest != nullptr) TurnAway(*oldest, kThatWait);
  Announce();
}

// The place in the backlog is free again. What the program does with the request, and when, is its own affair: the identifiers that it
// neither answers nor destroys are its own memory, and their descriptors are found again by MakeRoom().
void ListenerImpl::OnFetched(const std::shared_ptr<EndpointImpl>& endpoint) {
  {
    std::lock_guard lock(mutex_);
    if (told_.erase(endpoint.get()) == 0) return;
    fetched_.Add(endpoint);
  }
  Announce();
}

// A request of which the program was told keeps its place in the backlog until the program fetches it: else one that comes and goes could fill
// the program's queue of events.
void ListenerImpl::OnLost(EndpointImpl& endpoint) {
  std::shared_ptr<EndpointImpl> silent, untold;
  std::lock_guard lock(mutex_);
  silent = silent_.Take(&endpoint);
  untold = untold_.Take(&endpoint);
  fetched_.Take(&endpoint);
}

void ListenerImpl::OnDone(EndpointImpl& endpoint) {
  std::shared_ptr<EndpointImpl> silent, untold;
  {
    std::lock_guard lock(mutex_);
    silent = silent_.Take(&endpoint);
    untold = untold_.Take(&endpoint);
    fetched_.Take(&endpoint);
    if (told_.erase(&endpoint) == 0) return;
  }
  Announce();
}

bool ListenerImpl::AcceptOne() {
  std::shared_ptr<EndpointImpl> endpoint, oldest;
  std::unique_ptr<llp::Responder> session;
  int shortage = 0;
  {
    std::lock_guard lock(mutex_);
    if (sessions_ == nullptr) return false;
    auto accepted = sessions_->Accept();
    if (!accepted.ok()) {
      if (!IsShortage(accepted.error())) return false;
      shortage = accepted.error();
    } else {
      session = std::move(accepted.value());
      if (silent_.size() >= kMostSilent) oldest = silent_.TakeOldest();
      endpoint = std::make_shared<EndpointImpl>(around_);
      silent_.Add(endpoint);
    }
  }
  if (shortage != 0) {
    LogWarning(Format("a connection to %s waits: %s", local_.ToString().c_str(), DescribeShortage(shortage).c_str()));
    return MakeRoom();
  }
  if (oldest != nullptr) TurnAway(*oldest, kThatAreSilent);
  if (endpoint != nullptr) endpoint->StartResponder(std::move(session), shared_from_this());
  return true;
}

// Those go first that have done least, and among them the oldest.
bool ListenerImpl::MakeRoom() {
  for (;;) {
    std::shared_ptr<EndpointImpl> silent, untold, fetched;
    {
      std::lock_guard lock(mutex_);
      silent = silent_.TakeOldest();
      if (silent == nullptr) untold = untold_.TakeOldest();
      while (silent == nullptr && untold == nullptr && fetched == nullptr) {
        if (fetched_.empty()) return false;
        fetched = fetched_.TakeOldest().lock();
      }
    }
    if (fetched == nullptr) {
      TurnAway(silent != nullptr ? *silent : *untold, silent != nullptr ? kThatAreSilent : kThatWait);
      return true;
    }
    if (!fetched->GiveWay()) continue;  // its peer left, or it is being answered
    LogWarning(Format("dropped the request of %s at %s, the oldest one that the program has not answered",
                      fetched->remote_address().ToString().c_str(), local_.ToString().c_str()));
    return true;
  }
}

void ListenerImpl::TurnAway(EndpointImpl& endpoint, const char* among) {
  LogWarning(Format("dropped the connection of %s at %s, the oldest of too many connections %s",
                    endpoint.remote_address().ToString().c_str(), local_.ToString().c_str(), among));
  endpoint.TurnAway();
}

void ListenerImpl::Announce() {
  std::lock_guard delivering(delivery_mutex_);
  for (;;) {
    std::shared_ptr<EndpointImpl> endpoint;
    std::shared_ptr<CmObserver> observer;
    {
      std::lock_guard lock(mutex_);
      if (untold_.empty() || told_.size() >= backlog_ || observer_ == nullptr) return;
      endpoint = untold_.TakeOldest();
      told_.insert(endpoint.get());
      observer = observer_;
    }
    observer->OnCmEvent(endpoint->DescribeRequest());
  }
}

}  // namespace weft::sim
