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

// Connection management of the RNIC. librdmacm gets it from libibverbs by weft_private_cm_api(). This header has only
// interfaces, so that each process links one engine.
namespace weft::sim {

class Endpoint;

// How long a refused request is repeated, at growing intervals. Some programs (perftest among them) tell their peer to
// connect before they listen, and rely on an RNIC needing longer than that to set up a connection.
inline constexpr std::chrono::milliseconds kRefusalLimit{250};

// The kernel's connection manager uses this value for its queue pairs: 1 s.
inline constexpr uint8_t kUsualAckTimeout = 18;

struct ConnectParameters {
  std::vector<uint8_t> private_data;
  uint16_t ird = 0;   // responder_resources
  uint16_t ord = 0;   // initiator_depth
  uint32_t number = 0;  // for datagrams, in Accept: the queue pair that serves the requester
  uint32_t qkey = 0;    // its Q_Key
  // RoCE persona, to another Weft end: IBV_QP_RNR_RETRY and IBV_QP_RETRY_CNT of ibv_modify_qp(3).
  uint8_t rnr_retry = 7;
  uint8_t retry_count = 7;
  uint8_t ack_timeout = kUsualAckTimeout;  // IBV_QP_TIMEOUT: 4.096 us * 2^n; 0: for ever
};

struct CmEvent {
  enum class Kind : uint8_t {
    kConnectRequest,  // listener: `endpoint` is new and waits for Accept or Reject
    kEstablished,     // at both ends; initiator: has the private data of the reply
    // The peer's program rejected (ECONNREFUSED with private data), no program listens (ECONNREFUSED), or the peer left
    // before it answered (ECONNRESET).
    kRejected,
    kUnreachable,     // ETIMEDOUT, EHOSTUNREACH, ENETUNREACH ...
    kConnectError,    // the peer violated MPA; responder: the connection was lost during set-up
    kDisconnected,    // once, after kEstablished
  };
  // The reason of a rejection by InfiniBand's CM (ib_cm_rej_reason of the kernel's rdma/ib_cm.h).
  enum class Reason : uint8_t {
    kInvalidServiceId = 8,  // no program listens
    kConsumerDefined = 28,  // the program rejects it, destroys it unanswered, or ends
    kVendorOption = 35,     // the program rejects it by rdma_reject_ece
  };
  Kind kind = Kind::kConnectError;
  Reason reason = Reason::kConsumerDefined;  // kRejected
  int error = 0;                       // positive errno; 0 for kConnectRequest, kEstablished, kDisconnected
  std::vector<uint8_t> private_data;   // exactly as the peer's program passed it
  // kConnectRequest: the peer's request as seen from this end; otherwise negotiated
  uint16_t ird = 0, ord = 0;
  std::shared_ptr<Endpoint> endpoint;  // kConnectRequest
  // Datagrams only.
  uint32_t number = 0;      // kEstablished: the peer's queue pair
  uint32_t qkey = 0;        // and its Q_Key
  uint8_t sidr_status = 0;  // kUnreachable: SIDR status of ib_cm; not 0 if the peer refused or no program listens
};

// Called on the RNIC's thread or from within a verbs call of the program, with no lock held. The events of an endpoint
// come in order, one at a time.
class CmObserver {
 public:
  virtual ~CmObserver() = default;
  virtual void OnCmEvent(CmEvent event) = 0;
};

// One connection attempt, and then the connection. No call blocks. Functions return 0 or a positive errno.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  // Sets the receiver of events. Events that came before are delivered now; only a loss of the connection is possible.
  // For the endpoint of a kConnectRequest, the call also means that the program has fetched the request: its place in
  // the listener's backlog is free again. nullptr: there is no receiver any more; the call blocks until a running
  // OnCmEvent has returned, unless it comes from within it.
  virtual void SetObserver(std::shared_ptr<CmObserver> observer) = 0;

  // Starts to connect `qp` (in INIT). EINVAL: wrong state, or private data too long (504 bytes with revision 2 and
  // IRD/ORD words). ENETUNREACH, EADDRNOTAVAIL ...: from the system.
  virtual int Connect(const transport::SocketAddress& local, const transport::SocketAddress& remote, ibv_qp* qp,
                      const ConnectParameters& parameters) = 0;
  // Answers a kConnectRequest. The queue pair is in RTS when this returns 0; kEstablished follows.
  virtual int Accept(ibv_qp* qp, const ConnectParameters& parameters) = 0;
  // `reason`: kConsumerDefined or kVendorOption. Only another Weft end learns it. Datagrams have no reason.
  virtual int Reject(const std::vector<uint8_t>& private_data, CmEvent::Reason reason) = 0;
  // Ends the connection in order: what was posted is sent, then FIN; kDisconnected follows. ENOTCONN: there is no
  // connection.
  virtual int Disconnect() = 0;
  // Abandons what is in progress, without events. A request without an answer is rejected. A connection that is being
  // set up is aborted. An established connection stays with its queue pair.
  virtual void Close() = 0;

  virtual transport::SocketAddress local_address() const = 0;
  virtual transport::SocketAddress remote_address() const = 0;
};

class CmListener {
 public:
  virtual ~CmListener() = default;
  virtual transport::SocketAddress local_address() const = 0;  // with the chosen port
  // No kConnectRequest comes after the call returned. Connections not yet announced are dropped.
  virtual void Close() = 0;
};

class CmApi {
 public:
  static constexpr int kVersion = 6;
  virtual ~CmApi() = default;
  virtual std::shared_ptr<Endpoint> CreateEndpoint() = 0;
  // `backlog`: maximum number of requests announced to the program but not fetched. Errors: EADDRINUSE, EADDRNOTAVAIL,
  // EACCES ...
  virtual Result<std::shared_ptr<CmListener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                          bool reuse_address, std::shared_ptr<CmObserver> observer) = 0;
  // Whether a listener also binds the UDP port with the same number.
  virtual bool listeners_take_udp_port() { return false; }
  // The same for unreliable datagrams (sim/cm/sidr/sidr.h): finds queue pairs, but does not connect them.
  virtual std::shared_ptr<Endpoint> CreateDatagramEndpoint() { return nullptr; }
  virtual Result<std::shared_ptr<CmListener>, int> ListenDatagrams(const transport::SocketAddress& /*local*/, int /*backlog*/,
                                                                   bool /*only_v6*/, bool /*reuse_address*/,
                                                                   std::shared_ptr<CmObserver> /*observer*/) {
    return EOPNOTSUPP;
  }
  // Timers and deferred work for the connection manager. Address and route resolution report their results as events.
  virtual transport::Network& network() = 0;

  // Returns the event that a fault (cm_event) puts in place of the next one; nullopt: none.
  enum class FaultPoint : uint8_t { kResolveAddress, kResolveRoute, kConnect, kEstablished, kDisconnected };
  struct FaultEvent {
    int event = 0;   // rdma_cm_event_type
    int status = 0;  // 0 or a positive errno. RDMA_CM_EVENT_REJECTED: 0 means as if a program rejects
    transport::Duration after{};
  };
  virtual std::optional<FaultEvent> FaultAt(FaultPoint, const transport::SocketAddress& /*peer*/, const char* /*device*/) {
    return std::nullopt;
  }
};

}  // namespace weft::sim

// Exported by libibverbs.so.1 at the node WEFT_PRIVATE_1. nullptr: `version` is that of another Weft.
extern "C" weft::sim::CmApi* weft_private_cm_api(int version);

#endif  // SIM_CM_API_H_
