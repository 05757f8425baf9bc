#include "sim/cm/engine.h"

#include <rdma/rdma_cma.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "faults/injector.h"
#include "sim/cm/endpoint.h"
#include "sim/cm/listener.h"
#include "sim/cm/sidr/sidr.h"

namespace weft::sim {
namespace {

constexpr int kSmallestBacklog = 128;

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
    {CmApi::FaultPoint::kConnect, RDMA_CM_EVENT_REJECTED, 0},
    {CmApi::FaultPoint::kEstablished, RDMA_CM_EVENT_DEVICE_REMOVAL, 0},
    {CmApi::FaultPoint::kEstablished, RDMA_CM_EVENT_ADDR_CHANGE, 0},
    {CmApi::FaultPoint::kDisconnected, RDMA_CM_EVENT_TIMEWAIT_EXIT, 0},
};

class CmEngine final : public CmApi {
 public:
  explicit CmEngine(const Surroundings& around) : around_(around) {}

  std::shared_ptr<Endpoint> CreateEndpoint() override { return std::make_shared<EndpointImpl>(around_); }

  Result<std::shared_ptr<CmListener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                  bool reuse_address, std::shared_ptr<CmObserver> observer) override {
    auto sessions = around_.wire.Listen(local, std::max(backlog, kSmallestBacklog), only_v6, reuse_address);
    if (!sessions.ok()) return sessions.error();
    auto listener = std::make_shared<ListenerImpl>(around_, std::move(sessions.value()), backlog, std::move(observer));
    listener->Start();
    return std::shared_ptr<CmListener>(std::move(listener));
  }

  bool listeners_take_udp_port() override { return around_.wire.listeners_take_udp_port(); }

  std::shared_ptr<Endpoint> CreateDatagramEndpoint() override { return MakeSidrRequester(around_.network); }

  Result<std::shared_ptr<CmListener>, int> ListenDatagrams(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                           bool reuse_address, std::shared_ptr<CmObserver> observer) override {
    return ListenForSidr(around_.network, local, backlog, only_v6, reuse_address, std::move(observer));
  }

  transport::Network& network() override { return around_.network; }

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
  const Surroundings around_;
};

}  // namespace

std::unique_ptr<CmApi> MakeCmEngine(const Surroundings& around) { return std::make_unique<CmEngine>(around); }

}  // namespace weft::sim
