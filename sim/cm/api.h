#ifndef SIM_CM_API_H_
#define SIM_CM_API_H_

#include <infiniband/verbs.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "transport/network.h"
#include "transport/socket_address.h"

// Connection management as the RNIC offers it. librdmacm reaches it in libibverbs through weft_private_cm_api(): this header
// has interfaces only, so that the engine is linked once per process.
namespace weft::sim {

class Endpoint;

// A refused request is tried again for so long, at growing intervals: programs (perftest among them) tell their peer to connect and
// only then listen, and rely on an RNIC's connection set-up taking longer than that.
inline constexpr std::chrono::milliseconds kRefusalLimit{250};

// As the kernel's connection manager sets it for its queue pairs: 1 s.
inline constexpr uint8_t kUsualAckTimeout = 18;

struct ConnectParameters {
  std::vector<uint8_t> private_data;
  uint16_t ird = 0;   // responder_resources
  uint16_t ord = 0;   // initiator_depth
  uint32_t number = 0;  // datagrams, Accept: the queue pair that serves the requester
  uint32_t qkey = 0;    // and its Q_Key
  // RoCE persona, towards another Weft end: ibv_modify_qp(3), IBV_QP_RNR_RETRY and IBV_QP_RETRY_CNT.
  uint8_t rnr_retry = 7;
  uint8_t retry_count = 7;
  uint8_t ack_timeout = kUsualAckTimeout;  // IBV_QP_TIMEOUT: 4.096 us * 2^n, 0 for ever
};

struct CmEvent {
  enum class Kind : uint8_t {
    kConnectRequest,  // listener: `endpoint` is new, waits for Accept or Reject
    kEstablished,     // both sides; initiator: private data of the reply
    // The peer's program said no (ECONNREFUSED with private data), nobody listens (ECONNREFUSED), or the peer went away before it
    // answered (ECONNRESET).
    kRejected,
    kUnreachable,     // ETIMEDOUT, EHOSTUNREACH, ENETUNREACH ...
    kConnectError,    // the peer broke the rules of MPA; responder: the connection was lost during set-up
    kDisconnected,    // once, after kEstablished
  };
  // Why the CM of InfiniBand rejects a request (ib_cm_rej_reason of the kernel's rdma/ib_cm.h).
  enum class Reason : uint8_t {
    kInvalidServiceId = 8,  // nobody listens
    kConsumerDefined = 28,  // the program rejects it, destroys it unanswered, or ends
    kVendorOption = 35,     // the program rejects it by rdma_reject_ece
  };
  Kind kind = Kind::kConnectError;
  Reason reason = Reason::kConsumerDefined;  // kRejected
  int error = 0;                       // positive errno; 0 for kConnectRequest, kEstablished, kDisconnected
  std::vector<uint8_t> private_data;   // the peer's program's, exactly as it was given there
  uint16_t ird = 0, ord = 0;           // kConnectRequest: what the peer asks for, from our side's view; else negotiated
  std::shared_ptr<Endpoint> endpoint;  // kConnectRequest
  // Datagrams only.
  uint32_t number = 0;      // kEstablished: the peer's queue pair
  uint32_t qkey = 0;        // and its Q_Key
  uint8_t sidr_status = 0;  // kUnreachable: not 0 if the peer answered so, or nobody listens (ib_cm's SIDR status)
};

// Called on the RNIC's thread or from within a program's verbs call, no locks held; events of one endpoint come in order, one
// at a time.
class CmObserver {
 public:
  virtual ~CmObserver() = default;
  virtual void OnCmEvent(CmEvent event) = 0;
};

// One connection attempt and then the connection. Nothing blocks. Functions return 0 or a positive errno.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // Where events go from now on. Events that came before (none but a loss of the connection is possible) are delivered now. For the endpoint
  // of a kConnectRequest this says besides that the program has fetched it: its place in the listener's backlog is free again.
  // nullptr: nobody listens any more; blocks until a running OnCmEvent has returned unless called from within it.
  virtual void SetObserver(std::shared_ptr<CmObserver> observer) = 0;

  // Starts connecting `qp` (in INIT). EINVAL: state, private data too long (504 bytes with revision 2 and IRD/ORD words);
  // ENETUNREACH, EADDRNOTAVAIL ... from the system.
  virtual int Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote, ibv_qp* qp,
                      const ConnectParameters& parameters) = 0;
  // Answers a kConnectRequest. The queue pair is in RTS when this returns 0; kEstablished follows.
  virtual int Accept(ibv_qp* qp, const ConnectParameters& parameters) = 0;
  // `reason`: kConsumerDefined or kVendorOption, which only another Weft is told; datagrams have none.
  virtual int Reject(const std::vector<uint8_t>& private_data, CmEvent::Reason reason) = 0;
  // Ends the connection in order: what was posted goes out, then FIN; kDisconnected follows. ENOTCONN: there is none.
  virtual int Disconnect() = 0;
  // Gives up whatever is under way, without events: a request unanswered is rejected, a connection being set up is aborted, an
  // established connection stays with its queue pair.
  virtual void Close() = 0;

  virtual transport::SocketAddress local_address() const = 0;
  virtual transport::SocketAddress remote_address() const = 0;
};

class CmListener {
 public:
  virtual ~CmListener() = default;
  virtual transport::SocketAddress local_address() const = 0;  // with the port that was chosen
  // No kConnectRequest after this returned. Connections not yet announced are dropped.
  virtual void Close() = 0;
};

class CmApi {
 public:
  static constexpr int kVersion = 6;
  virtual ~CmApi() = default;
  virtual std::shared_ptr<Endpoint> CreateEndpoint() = 0;
  // `backlog` bounds requests of which the program was told and that it has not fetched. Errors: EADDRINUSE, EADDRNOTAVAIL, EACCES ...
  virtual Result<std::shared_ptr<CmListener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                          bool reuse_address, std::shared_ptr<CmObserver> observer) = 0;
  // Whether a listener has the UDP port of its number besides.
  virtual bool listeners_take_udp_port() { return false; }
  // The same for unreliable datagrams (sim/cm/sidr/sidr.h), by which queue pairs are found and not connected.
  virtual std::shared_ptr<Endpoint> CreateDatagramEndpoint() { return nullptr; }
  virtual Result<std::shared_ptr<CmListener>, int> ListenDatagrams(const transport::SocketAddress& /*local*/, int /*backlog*/,
                                                                   bool /*only_v6*/, bool /*reuse_address*/,
                                                                   std::shared_ptr<CmObserver> /*observer*/) {
    return EOPNOTSUPP;
  }
  // Timers and deferred work for the connection manager (address and route resolution report as events).
  virtual transport::Network& network() = 0;

  // An event that is to come instead of what would follow (faults: cm_event); nullopt: none.
  enum class FaultPoint : uint8_t { kResolveAddress, kResolveRoute, kConnect, kEstablished, kDisconnected };
  struct FaultEvent {
    int event = 0;   // rdma_cm_event_type
    int status = 0;  // 0 or a positive errno. RDMA_CM_EVENT_REJECTED: 0 is as a program rejects
    transport::Duration after{};
  };
  virtual std::optional<FaultEvent> FaultAt(FaultPoint, const transport::SocketAddress& /*peer*/, const char* /*device*/) {
    return std::nullopt;
  }
};

}  // namespace weft::sim

// In libibverbs.so.1 under the node WEFT_PRIVATE_1. nullptr: another version of Weft.
extern "C" weft::sim::CmApi* weft_private_cm_api(int version);

#endif  // SIM_CM_API_H_
