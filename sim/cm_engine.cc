#include "sim/cm_engine.h"

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/file_limit.h"
#include "base/log.h"
#include "faults/injector.h"
#include "sim/endpoint.h"
#include "sim/rnic.h"
#include "sim/sidr.h"
#include "sim/waiting_room.h"

namespace weft::sim {
namespace {

// Connections that have not sent their whole MPA Request yet, and those that have and of which the program was not told, since its backlog is
// full. Beyond this the one that has waited longest gives way, so that silent peers neither use up the process nor keep others out.
constexpr size_t kMostSilent = 2048, kMostUntold = 4096;
constexpr int kAcceptsPerTurn = 64;
constexpr int kSmallestTcpBacklog = 128;

class ListenerImpl final : public CmListener,
                           public RequestSink,
                           public transport::ReadyHandler,
                           public std::enable_shared_from_this<ListenerImpl> {
 public:
  ListenerImpl(Rnic& rnic, std::unique_ptr<transport::Listener> listener, int backlog, std::shared_ptr<CmObserver> observer)
      : rnic_(rnic),
        local_(listener->LocalAddress()),
        backlog_(static_cast<size_t>(std::max(backlog, 1))),
        listener_(std::move(listener)),
        observer_(std::move(observer)) {}
  ~ListenerImpl() override { Close(); }

  void Start() {
    std::lock_guard lock(mutex_);
    watch_ = rnic_.network().Watch(*listener_, shared_from_this());
  }

  transport::SocketAddress local_address() const override { return local_; }

  void Close() override {
    std::unique_ptr<transport::Listener> listener;
    std::vector<std::shared_ptr<EndpointImpl>> silent, untold;
    {
      std::lock_guard wait_for_delivery(delivery_mutex_);
      std::lock_guard lock(mutex_);
      if (watch_ != 0) rnic_.network().Unwatch(std::exchange(watch_, 0));
      listener = std::move(listener_);
      observer_.reset();
      silent = silent_.TakeAll();
      untold = untold_.TakeAll();
    }
    for (const auto& endpoint : silent) endpoint->Close();
    for (const auto& endpoint : untold) endpoint->Close();
  }

  void OnReady(transport::Interest) override {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      if (!AcceptOne()) return;
    }
  }

  void OnRequest(std::shared_ptr<EndpointImpl> endpoint) override {
    std::shared_ptr<EndpointImpl> known, oldest;
    {
      std::lock_guard lock(mutex_);
      known = silent_.Take(endpoint.get());
      if (listener_ != nullptr) {
        if (untold_.size() >= kMostUntold) oldest = untold_.TakeOldest();
        untold_.Add(std::move(endpoint));
      }
    }
    if (oldest != nullptr) TurnAway(*oldest, "whose requests wait for the program");
    Announce();
  }

  // A request of which the program was told keeps its place in the backlog until the program lets it go: else one that comes and goes could
  // fill the program's queue of events.
  void OnLost(EndpointImpl& endpoint) override {
    std::shared_ptr<EndpointImpl> silent, untold;
    std::lock_guard lock(mutex_);
    silent = silent_.Take(&endpoint);
    untold = untold_.Take(&endpoint);
  }

  void OnDone(EndpointImpl& endpoint) override {
    std::shared_ptr<EndpointImpl> silent, untold;
    {
      std::lock_guard lock(mutex_);
      silent = silent_.Take(&endpoint);
      untold = untold_.Take(&endpoint);
      if (told_.erase(&endpoint) == 0) return;
    }
    Announce();
  }

 private:
  // False: nobody waits to be accepted, or there is no room.
  bool AcceptOne() {
    std::shared_ptr<EndpointImpl> endpoint, oldest;
    std::unique_ptr<transport::ByteStream> socket;
    {
      std::lock_guard lock(mutex_);
      if (listener_ == nullptr) return false;
      auto accepted = listener_->Accept();
      if (!accepted.ok()) {
        if (!IsShortage(accepted.error())) return false;
        LogWarning(Format("a connection to %s waits: %s", local_.ToString().c_str(), DescribeShortage(accepted.error()).c_str()));
        oldest = silent_.TakeOldest();
        if (oldest == nullptr) return false;
      } else {
        socket = std::move(accepted.value());
        if (silent_.size() >= kMostSilent) oldest = silent_.TakeOldest();
        endpoint = std::make_shared<EndpointImpl>(rnic_);
        silent_.Add(endpoint);
      }
    }
    if (oldest != nullptr) TurnAway(*oldest, "that have not sent an MPA request");
    if (endpoint != nullptr) endpoint->StartResponder(std::move(socket), shared_from_this());
    return true;
  }

  void TurnAway(EndpointImpl& endpoint, const char* among) {
    LogWarning(Format("%s gives way at %s, the oldest of too many connections %s", endpoint.remote_address().ToString().c_str(),
                      local_.ToString().c_str(), among));
    endpoint.TurnAway();
  }

  // Tells the program of waiting requests, up to its backlog of unanswered ones.
  void Announce() {
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

  Rnic& rnic_;
  const transport::SocketAddress local_;
  const size_t backlog_;
  std::recursive_mutex delivery_mutex_;  // one announcement at a time; before mutex_
  std::mutex mutex_;                     // guards everything below; no endpoint is called or destroyed with it held
  std::unique_ptr<transport::Listener> listener_;
  std::shared_ptr<CmObserver> observer_;
  transport::WatchId watch_ = 0;
  WaitingRoom<EndpointImpl> silent_;  // whose request is not complete
  WaitingRoom<EndpointImpl> untold_;  // ... is, and the program was not told of it
  std::unordered_set<const EndpointImpl*> told_;  // ... was, and did not answer
};

// Where an event that is asked for can come, and its usual status.
struct KnownFaultEvent {
  CmApi::FaultPoint point;
  rdma_cm_event_type event;
  int error;
};
constexpr KnownFaultEvent kFaultEvents[] = {
    {CmApi::FaultPoint::kResolveAddress, RDMA_CM_EVENT_ADDR_ERROR, EHOSTUNREACH},
    {CmApi::FaultPoint::kResolveRoute, RDMA_CM_EVENT_ROUTE_ERROR, ETIMEDOUT},
    {CmApi::FaultPoint::kConnect, RDMA_CM_EVENT_CONNECT_ERROR, ECONNRESET},
    {CmApi::FaultPoint::kConnect, RDMA_CM_EVENT_UNREACHABLE, ETIMEDOUT},
    {CmApi::FaultPoint::kConnect, RDMA_CM_EVENT_REJECTED, ECONNREFUSED},
    {CmApi::FaultPoint::kEstablished, RDMA_CM_EVENT_DEVICE_REMOVAL, 0},
    {CmApi::FaultPoint::kEstablished, RDMA_CM_EVENT_ADDR_CHANGE, 0},
    {CmApi::FaultPoint::kDisconnected, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0},
};

class CmEngine final : public CmApi {
 public:
  explicit CmEngine(Rnic& rnic) : rnic_(rnic) {}

  std::shared_ptr<Endpoint> CreateEndpoint() override { return std::make_shared<EndpointImpl>(rnic_); }

  Result<std::shared_ptr<CmListener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                  bool reuse_address, std::shared_ptr<CmObserver> observer) override {
    auto socket = rnic_.network().Listen(local, std::max(backlog, kSmallestTcpBacklog), only_v6, reuse_address);
    if (!socket.ok()) return socket.error();
    auto listener = std::make_shared<ListenerImpl>(rnic_, std::move(socket.value()), backlog, std::move(observer));
    listener->Start();
    return std::shared_ptr<CmListener>(std::move(listener));
  }

  std::shared_ptr<Endpoint> CreateDatagramEndpoint() override { return MakeSidrRequester(rnic_.network()); }

  Result<std::shared_ptr<CmListener>, int> ListenDatagrams(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                           bool reuse_address, std::shared_ptr<CmObserver> observer) override {
    return ListenForSidr(rnic_.network(), local, backlog, only_v6, reuse_address, std::move(observer));
  }

  transport::Network& network() override { return rnic_.network(); }

  std::optional<FaultEvent> FaultAt(FaultPoint point, const transport::SocketAddress& peer, const char* device) override {
    if (!faults::Enabled(faults::Kind::kCmEvent)) return std::nullopt;
    for (const auto& known : kFaultEvents) {
      if (known.point != point) continue;
      const std::string where = std::string("rdma_cm event ") + faults::NameIn(faults::EventWords(), known.event) + ", peer " + peer.ToString();
      const auto fault = faults::Injector::Process().Ask(faults::Kind::kCmEvent, {.peer = &peer, .device = device, .event = known.event}, where);
      if (fault) return FaultEvent{known.event, fault->error != 0 ? fault->error : known.error, fault->after};
    }
    return std::nullopt;
  }

 private:
  Rnic& rnic_;
};

}  // namespace

std::unique_ptr<CmApi> MakeCmEngine(Rnic& rnic) { return std::make_unique<CmEngine>(rnic); }

}  // namespace weft::sim
