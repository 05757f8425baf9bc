#include "sim/cm_engine.h"

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <deque>
#include <mutex>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/log.h"
#include "faults/injector.h"
#include "sim/endpoint.h"
#include "sim/rnic.h"
#include "sim/sidr.h"

namespace weft::sim {
namespace {

// Connections that have not sent their whole MPA Request yet; beyond this new ones are refused until some are through or
// timed out, so that silent peers cannot use up the process.
constexpr size_t kMostSilent = 2048;
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
    std::vector<std::shared_ptr<EndpointImpl>> silent;
    std::deque<std::shared_ptr<Endpoint>> waiting;
    {
      std::lock_guard wait_for_delivery(delivery_mutex_);
      std::lock_guard lock(mutex_);
      if (watch_ != 0) rnic_.network().Unwatch(std::exchange(watch_, 0));
      listener = std::move(listener_);
      observer_.reset();
      silent.swap(silent_);
      waiting.swap(waiting_);
    }
    for (const auto& endpoint : silent) endpoint->Close();
    for (const auto& endpoint : waiting) endpoint->Close();
  }

  void OnReady(transport::Interest) override {
    for (int i = 0; i < kAcceptsPerTurn; ++i) {
      std::shared_ptr<EndpointImpl> endpoint;
      std::unique_ptr<transport::ByteStream> socket;
      {
        std::lock_guard lock(mutex_);
        if (listener_ == nullptr) return;
        auto accepted = listener_->Accept();
        if (!accepted.ok()) return;
        socket = std::move(accepted.value());
        if (silent_.size() >= kMostSilent) {
          LogWarning(Format("refused %s at %s: %zu connections have not sent an MPA request yet",
                            socket->PeerAddress().ToString().c_str(), local_.ToString().c_str(), silent_.size()));
          socket->Abort();
          continue;
        }
        endpoint = std::make_shared<EndpointImpl>(rnic_);
        silent_.push_back(endpoint);
      }
      endpoint->StartResponder(std::move(socket), shared_from_this());
      ForgetSilent();  // those that failed already
    }
  }

  void OnRequest(std::shared_ptr<Endpoint> endpoint) override {
    {
      std::lock_guard lock(mutex_);
      if (listener_ != nullptr) waiting_.push_back(endpoint);
      std::erase_if(silent_, [&](const auto& known) { return known == endpoint; });
    }
    Announce();
  }

  void OnGone(bool had_request) override {
    {
      std::lock_guard lock(mutex_);
      if (had_request && unanswered_ > 0) --unanswered_;
    }
    if (had_request) Announce();
  }

 private:
  void ForgetSilent() {
    std::lock_guard lock(mutex_);
    std::erase_if(silent_, [](const auto& endpoint) { return endpoint.use_count() == 1; });
  }

  // Tells the program of waiting requests, up to its backlog of unanswered ones.
  void Announce() {
    std::lock_guard delivering(delivery_mutex_);
    for (;;) {
      std::shared_ptr<Endpoint> endpoint;
      std::shared_ptr<CmObserver> observer;
      {
        std::lock_guard lock(mutex_);
        if (waiting_.empty() || unanswered_ >= backlog_ || observer_ == nullptr) return;
        endpoint = std::move(waiting_.front());
        waiting_.pop_front();
        ++unanswered_;
        observer = observer_;
      }
      observer->OnCmEvent(static_cast<EndpointImpl&>(*endpoint).DescribeRequest());
    }
  }

  Rnic& rnic_;
  const transport::SocketAddress local_;
  const size_t backlog_;
  std::recursive_mutex delivery_mutex_;  // one announcement at a time; before mutex_
  std::mutex mutex_;                     // guards everything below
  std::unique_ptr<transport::Listener> listener_;
  std::shared_ptr<CmObserver> observer_;
  transport::WatchId watch_ = 0;
  std::vector<std::shared_ptr<EndpointImpl>> silent_;
  std::deque<std::shared_ptr<Endpoint>> waiting_;
  size_t unanswered_ = 0;
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
