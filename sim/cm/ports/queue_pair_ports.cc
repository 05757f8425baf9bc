#include "sim/cm/ports/queue_pair_ports.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/log.h"
#include "sim/cm/endpoint.h"
#include "sim/cm/ports/dialler.h"
#include "sim/cm/ports/numbers.h"
#include "sim/cm/ports/search.h"
#include "sim/cm/ports/wish.h"
#include "sim/cm/waiting_room.h"
#include "sim/device/limits.h"
#include "sim/queue_pair/queue_pair.h"

namespace weft::sim {
namespace {

constexpr int kBacklog = 1 << 16;      // requests that wait for their queue pair
constexpr size_t kMostWaiting = 4096;  // ... of which the oldest is refused then
// How long the end with the larger number waits in RTS for the request of the other.
constexpr std::chrono::milliseconds kPatience{10};
// Between the end of a connection that was of no use and the next attempt.
constexpr std::chrono::milliseconds kPause{5};
// How long a request waits for its queue pair; who dials tries again by then.
constexpr std::chrono::seconds kWaitLimit{60};

// A request that came before its queue pair looked for it.
struct EarlyRequest {
  Wish wish;
  std::shared_ptr<Endpoint> endpoint;
};

// Endpoints here are all of connections.
EndpointImpl& Connecting(Endpoint& endpoint) { return static_cast<EndpointImpl&>(endpoint); }

void LetGo(const std::shared_ptr<Endpoint>& endpoint) {
  endpoint->SetObserver(nullptr);
  endpoint->Close();
}

void WarnOfNumbers(const Search& search, const transport::SocketAddress& from) {
  LogWarning(Format("qp 0x%x: refused %s: it claims to be the peer qp 0x%x, but its packet sequence numbers do not match (sq_psn of each end must "
                    "be rq_psn of the other)",
                    search.number, from.ToString().c_str(), search.choice.number));
}

}  // namespace

// Brings those who look and those who ask together.
class QueuePairPorts::State final : public std::enable_shared_from_this<State> {
 public:
  State(const Surroundings& around, const Settings& settings, CmApi& cm)
      : numbers_(settings,
                 [this, &cm](const transport::SocketAddress& at) {
                   return cm.Listen(at, kBacklog, /*only_v6=*/false, /*reuse_address=*/false, std::make_shared<Requests>(weak_from_this()));
                 }),
        around_(around) {}

  PortNumbers& numbers() { return numbers_; }
  void Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice);
  void Dial(uint32_t number, uint32_t send_number);
  void Forget(uint32_t number);
  void Release(uint32_t number);
  void Close();

 private:
  // What the listeners tell, while it lives.
  class Requests final : public CmObserver {
   public:
    explicit Requests(std::weak_ptr<State> state) : state_(std::move(state)) {}
    void OnCmEvent(CmEvent event) override {
      if (const auto state = state_.lock()) state->OnCmEvent(event);
    }

   private:
    const std::weak_ptr<State> state_;
  };

  // Hears that the connection ended that a search had accepted.
  class Ending final : public CmObserver {
   public:
    Ending(std::weak_ptr<State> state, uint32_t number, const std::shared_ptr<Endpoint>& endpoint)
        : state_(std::move(state)), number_(number), endpoint_(endpoint) {}
    void OnCmEvent(CmEvent event) override {
      if (event.kind != CmEvent::Kind::kDisconnected) return;
      const auto state = state_.lock();
      const auto endpoint = endpoint_.lock();
      if (state != nullptr && endpoint != nullptr) state->OnEnd(number_, *endpoint);
    }

   private:
    const std::weak_ptr<State> state_;
    const uint32_t number_;
    const std::weak_ptr<Endpoint> endpoint_;
  };

  // Requests that a search took, or that are of no use any more.
  struct Taken {
    std::shared_ptr<Endpoint> found;  // nullptr: none came yet
    std::vector<std::shared_ptr<EarlyRequest>> stale;
  };

  void OnCmEvent(const CmEvent& event);
  void OnRequest(const Wish& wish, const std::shared_ptr<Endpoint>& endpoint);
  // With mutex_ held: the newest request that waits for the search and is proven, with those that it replaces. It is the search's endpoint now.
  Taken TakeEarly(Search& search);
  // Takes a request that waits; else opens the connection, now or after `patience`, if the queue pair is in RTS.
  void Seek(uint32_t number, transport::Duration patience);
  // The connection of `endpoint` is over. If it was of no use the search goes on: it may have been that of a request that an earlier queue pair
  // with the peer's number had given up, and the one that has the number now is not connected yet.
  void OnEnd(uint32_t number, Endpoint& endpoint);
  // Gives the connection of `endpoint` to the search's queue pair.
  void Accept(const Search& search, const std::shared_ptr<Endpoint>& endpoint);
  void StartDialling(uint32_t number);  // unless a connection came meanwhile
  void ConnectToItself(QueuePair& qp, const PeerChoice& choice);

  PortNumbers numbers_;
  const Surroundings around_;
  std::mutex mutex_;  // guards what follows; with it held, endpoints are asked for addresses and numbers_ for numbers only
  std::unordered_map<uint32_t, Search> searches_;
  WaitingRoom<EarlyRequest> early_;
};

QueuePairPorts::QueuePairPorts(const Surroundings& around, const Settings& settings, CmApi& cm)
    : state_(std::make_shared<State>(around, settings, cm)) {}

QueuePairPorts::~QueuePairPorts() { state_->Close(); }

Result<uint32_t, int> QueuePairPorts::Allocate() { return state_->numbers().Allocate(); }

void QueuePairPorts::Release(uint32_t number) { state_->Release(number); }

void QueuePairPorts::Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice) { state_->Connect(std::move(qp), std::move(choice)); }

void QueuePairPorts::Dial(uint32_t number, uint32_t send_number) { state_->Dial(number, send_number); }

void QueuePairPorts::Forget(uint32_t number) { state_->Forget(number); }

void QueuePairPorts::State::Close() {
  numbers_.Close();
  std::vector<std::shared_ptr<EarlyRequest>> early;
  {
    std::lock_guard lock(mutex_);
    early = early_.TakeAll();
  }
  for (const auto& request : early) request->endpoint->Close();
}

// --- those who look ---

void QueuePairPorts::State::Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice) {
  const uint32_t number = qp->number();
  if (number == choice.number && IsOwn(choice.address)) return ConnectToItself(*qp, choice);
  numbers_.ListenAlsoAt(number, choice.local);
  Search search{.qp = qp, .number = number, .choice = std::move(choice)};
  Taken taken;
  {
    std::lock_guard lock(mutex_);
    taken = TakeEarly(search);
    searches_[number] = search;
  }
  for (const auto& request : taken.stale) request->endpoint->Close();
  if (taken.found != nullptr) Accept(search, taken.found);
}

void QueuePairPorts::State::Dial(uint32_t number, uint32_t send_number) {
  transport::Duration patience{};
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(number);
    if (at == searches_.end() || at->second.dial != nullptr) return;
    at->second.send_number = send_number & kMostSequence;
    if (!at->second.opens()) patience = kPatience;
  }
  Seek(number, patience);
}

void QueuePairPorts::State::Seek(uint32_t number, transport::Duration patience) {
  Search search;
  Taken taken;
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(number);
    if (at == searches_.end() || at->second.endpoint != nullptr) return;
    taken = TakeEarly(at->second);
    search = at->second;
  }
  for (const auto& request : taken.stale) request->endpoint->Close();
  if (taken.found != nullptr) {
    Accept(search, taken.found);
  } else if (patience == transport::Duration{}) {
    StartDialling(number);
  } else {
    around_.network.RunAt(around_.network.Now() + patience, [weak = weak_from_this(), number] {
      if (const auto state = weak.lock()) state->StartDialling(number);
    });
  }
}

void QueuePairPorts::State::OnEnd(uint32_t number, Endpoint& endpoint) {
  std::shared_ptr<QueuePair> qp;
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(number);
    if (at == searches_.end() || at->second.endpoint.get() != &endpoint) return;
    qp = at->second.qp.lock();
  }
  if (qp == nullptr || !qp->seeks_peer()) return;
  std::shared_ptr<Endpoint> over;  // let go of without the lock
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(number);
    if (at == searches_.end() || at->second.endpoint.get() != &endpoint) return;
    over = std::move(at->second.endpoint);
    at->second.endpoint = nullptr;
    at->second.dial = nullptr;
    at->second.again = true;
  }
  if (TraceEnabled()) Trace(Format("qp 0x%x: its connection ended before it was of any use, it looks for its peer again", number));
  Seek(number, kPause);
}

void QueuePairPorts::State::StartDialling(uint32_t number) {
  std::shared_ptr<Dialler> dial;
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(number);
    if (at == searches_.end()) return;
    Search& search = at->second;
    if (search.endpoint != nullptr || search.dial != nullptr || !search.send_number) return;
    const auto qp = search.qp.lock();
    if (qp == nullptr) return;
    const auto begin = [weak = weak_from_this(), number](Dialler& self, const std::shared_ptr<Endpoint>& endpoint) {
      const auto state = weak.lock();
      if (state == nullptr) return false;
      std::lock_guard lock(state->mutex_);
      const auto search = state->searches_.find(number);
      if (search == state->searches_.end() || search->second.dial.get() != &self) return false;
      search->second.endpoint = endpoint;
      return true;
    };
    const auto end = [weak = weak_from_this(), number](Endpoint& endpoint) {
      if (const auto state = weak.lock()) state->OnEnd(number, endpoint);
    };
    dial = search.dial = std::make_shared<Dialler>(around_, begin, end, qp, number, search.choice, *search.send_number, search.again);
  }
  dial->Start();
}

void QueuePairPorts::State::ConnectToItself(QueuePair& qp, const PeerChoice& choice) {
  auto loop = around_.wire.OpenLoop(choice.local, {.queue_pair = qp.number(), .device = qp.device()});
  if (!loop.ok()) {
    LogWarning(Format("qp 0x%x cannot be connected to itself: %s", qp.number(), std::strerror(loop.error())));
    return;
  }
  EstablishOptions options;
  options.terms = {.delivery = choice.delivery, .atomics = qp.offers_atomics(), .initiator = true, .to_itself = true};
  options.terms.outcome.ird = options.terms.outcome.ord = std::min<uint16_t>(choice.ird, kMaxReads);
  options.dialled = true;
  qp.Establish(std::move(*loop), std::move(options));
}

void QueuePairPorts::State::Forget(uint32_t number) {
  Search search;
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(number);
    if (at == searches_.end()) return;
    search = std::move(at->second);
    searches_.erase(at);
  }
  if (search.endpoint != nullptr) LetGo(search.endpoint);
}

// With the number go the requests that wait for its queue pair: an end that had a connection with it waits for the answer, and would wait
// for kWaitLimit. OnRequest adds none afterwards, for it looks with mutex_ held whether the number is taken.
void QueuePairPorts::State::Release(uint32_t number) {
  Forget(number);
  std::vector<std::shared_ptr<EarlyRequest>> refused;
  {
    std::lock_guard lock(mutex_);
    numbers_.Release(number);
    refused = early_.TakeAllIf([number](const EarlyRequest& request) { return request.wish.to == number; });
  }
  for (const auto& request : refused) request->endpoint->Reject({}, CmEvent::Reason::kConsumerDefined);
}

QueuePairPorts::State::Taken QueuePairPorts::State::TakeEarly(Search& search) {
  Taken taken;
  taken.stale = early_.TakeAllIf([&](const EarlyRequest& request) {
    return request.wish.to == search.number && search.Fits(request.wish, request.endpoint->remote_address()) && search.Proves(request.wish);
  });
  if (taken.stale.empty()) return taken;
  // Those before it are of a life before.
  search.endpoint = taken.found = taken.stale.back()->endpoint;
  taken.stale.pop_back();
  return taken;
}

// --- those who ask ---

void QueuePairPorts::State::OnCmEvent(const CmEvent& event) {
  if (event.kind != CmEvent::Kind::kConnectRequest) return;
  const std::optional<Wish> wish = Wish::Parse(event.private_data);
  if (wish && numbers_.IsTaken(wish->to)) return OnRequest(*wish, event.endpoint);
  const std::string line = "refused " + event.endpoint->remote_address().ToString() + ": it wants a queue pair that does not exist";
  if (wish && numbers_.WasEverTaken(wish->to)) {
    if (TraceEnabled()) Trace(line + " any more");  // its peer was destroyed meanwhile
  } else {
    LogWarning(line + " (a wrong number?)");
  }
  event.endpoint->Reject({}, CmEvent::Reason::kConsumerDefined);
}

void QueuePairPorts::State::OnRequest(const Wish& wish, const std::shared_ptr<Endpoint>& endpoint) {
  const transport::SocketAddress from = endpoint->remote_address();
  enum class Fate : uint8_t { kTaken, kRefused, kGone, kWaits } fate = Fate::kWaits;
  Search search;
  std::shared_ptr<Endpoint> given_up;
  std::vector<std::shared_ptr<EarlyRequest>> stale;
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(wish.to);
    const bool fits = at != searches_.end() && at->second.Fits(wish, from);
    if (fits && at->second.Proves(wish) && at->second.answers()) {
      fate = Fate::kTaken;
      given_up = std::exchange(at->second.endpoint, endpoint);
      at->second.dial = nullptr;
      search = at->second;
    } else {
      // One request of each: an older one is from a life before.
      stale = early_.TakeAllIf([&](const EarlyRequest& other) { return other.wish == wish && other.endpoint->remote_address().SameHost(from); });
      if (fits && at->second.send_number && !at->second.Proves(wish)) {
        fate = Fate::kRefused;
        search = at->second;
      } else if (!numbers_.IsTaken(wish.to)) {
        fate = Fate::kGone;  // destroyed since the request came
      } else {
        if (early_.size() >= kMostWaiting) stale.push_back(early_.TakeOldest());
        early_.Add(std::make_shared<EarlyRequest>(EarlyRequest{wish, endpoint}));
      }
    }
  }
  for (const auto& request : stale) request->endpoint->Close();
  if (given_up != nullptr) LetGo(given_up);
  switch (fate) {
    case Fate::kTaken:
      return Accept(search, endpoint);
    case Fate::kRefused:
      WarnOfNumbers(search, from);
      endpoint->Reject({}, CmEvent::Reason::kConsumerDefined);
      return;
    case Fate::kGone:
      endpoint->Reject({}, CmEvent::Reason::kConsumerDefined);
      return;
    case Fate::kWaits:
      return Connecting(*endpoint).LimitAnswer(kWaitLimit);
  }
}

void QueuePairPorts::State::Accept(const Search& search, const std::shared_ptr<Endpoint>& endpoint) {
  const auto qp = search.qp.lock();
  if (qp == nullptr) return endpoint->Close();
  const ConnectParameters parameters{.ird = search.choice.ird, .ord = search.choice.ord};
  endpoint->SetObserver(std::make_shared<Ending>(weak_from_this(), search.number, endpoint));
  if (Connecting(*endpoint).AcceptFor(qp, parameters, search.choice.delivery, /*dialled=*/true) == 0) return;
  // The peer left meanwhile. It comes again, or, where it is only there to receive, is come to.
  {
    std::lock_guard lock(mutex_);
    const auto at = searches_.find(search.number);
    if (at != searches_.end() && at->second.endpoint == endpoint) at->second.endpoint = nullptr;
  }
  StartDialling(search.number);
}

}  // namespace weft::sim
