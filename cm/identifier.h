#ifndef CM_IDENTIFIER_H_
#define CM_IDENTIFIER_H_

#include <rdma/rdma_cma.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "cm/channel.h"
#include "cm/devices.h"
#include "cm/event.h"
#include "cm/request_gate.h"
#include "transport/local_address.h"
#include "sim/cm/api.h"
#include "transport/socket_address.h"

namespace weft::cm {

// An rdma_cm_id: the public structure (its fields are filled as rdma-core fills them), and behind it what it is bound
// to and which event it waits for. Owns itself until Destroy; events and the engine share it.
//
// Functions return 0 or a positive errno. Apart from events, which come on the RNIC's thread, one program thread at a
// time works on an identifier; rdma_disconnect, rdma_get_cm_event and rdma_ack_cm_event may run beside it.
class Identifier : public rdma_cm_id, public sim::CmObserver, public std::enable_shared_from_this<Identifier> {
 public:
  enum class State : uint8_t {
    kIdle,
    kBound,
    kAddressResolved,
    kRouteResolved,
    kConnecting,
    kRequested,  // passive side, not yet answered
    kAccepting,  // accepted, kEstablished not yet come
    kEstablished,
    kDisconnected,
    kFailed,  // rejected, unreachable, lost during set-up
    kListening,
  };

  // `on` is nullptr: synchronous operation on a channel of its own. nullptr and errno: no descriptor left.
  static std::shared_ptr<Identifier> Create(Channel* on, void* context, rdma_port_space port_space,
                                            ibv_qp_type qp_type);
  // rdma_create_id, for queue pairs of `qp_type`, which the port space allows. 0 or errno.
  static int Make(rdma_event_channel* channel, void* context, rdma_port_space port_space, ibv_qp_type qp_type, rdma_cm_id** made);
  static Identifier* From(rdma_cm_id* id) { return static_cast<Identifier*>(id); }
  // For what a program hands in, which may be destroyed already or be destroyed by another thread meanwhile. nullptr: it is none (any more).
  static std::shared_ptr<Identifier> Find(rdma_cm_id* id);
  ~Identifier() override;
  Identifier(const Identifier&) = delete;
  Identifier& operator=(const Identifier&) = delete;

  // Cancels what is under way, drops events not yet gotten, waits for those not yet acknowledged.
  void Destroy();
  // rdma_migrate_id; `to` is nullptr: synchronous operation.
  int Migrate(Channel* to);
  bool synchronous() const { return synchronous_; }
  // Of unreliable datagrams: finds queue pairs, connects none.
  bool datagrams() const { return rdma_cm_id::qp_type == IBV_QPT_UD; }

  // resolve.cc
  int Bind(const transport::SocketAddress& address);
  int ResolveAddress(const transport::SocketAddress& source, const transport::SocketAddress& destination);
  int ResolveRoute();

  // connect.cc
  int Listen(int backlog);
  int Connect(const rdma_conn_param* parameters);
  int Accept(const rdma_conn_param* parameters);
  int AcceptDatagrams(const rdma_conn_param* parameters);
  int Reject(const void* data, size_t length, sim::CmEvent::Reason reason);
  int Disconnect();
  int Establish();
  bool connected() const;

  // multicast.cc
  int JoinGroup(const transport::SocketAddress& group, bool receive, void* context);
  int LeaveGroup(const transport::SocketAddress& group);

  // options.cc
  int SetOption(int level, int name, const void* value, size_t length);

  // addrinfo.cc: what rdma_getaddrinfo finds, for rdma_query_addrinfo; the outcome is an event. EBUSY: the last outcome was not fetched yet.
  int ResolveAddressInfo(const char* node, const char* service, const rdma_addrinfo* hints);
  // ENOENT: nothing was found, or it was fetched.
  int TakeAddressInfo(rdma_addrinfo** info);

  // Puts an event on the channel; `argument` is param.arg of rdma-core 60.
  void Post(rdma_cm_event_type type, int status, uint64_t argument = 0);

  // queue_pair.cc
  int CreateQueuePair(ibv_qp_init_attr_ex* attributes);
  void DestroyQueuePair();
  int CreateSharedReceiveQueue(ibv_srq_init_attr_ex* attributes);
  void DestroySharedReceiveQueue();
  int InitQueuePairAttributes(ibv_qp_attr* attributes, int* mask);

  // endpoint.cc: synchronous operation and rdma_create_ep.
  //
  // Synchronous: waits for the outcome of what was started, shows it as `event`. Otherwise 0 at once.
  int Complete();
  int CompleteDisconnect();
  int TakeRequest(rdma_cm_id** request);
  void RememberQueuePair(const ibv_qp_init_attr& attributes) { queue_pair_template_ = attributes; }
  void RememberConnectData(const void* data, size_t length);

  // channel.cc: between the channel and the program.
  //
  // False: the event has no receiver any more.
  bool BeginDelivery(Event& event);
  void Acknowledge();

  void OnCmEvent(sim::CmEvent event) override;

 private:
  Identifier(std::shared_ptr<Channel> on, bool synchronous);

  State state() const;
  void set_state(State state);
  // Posts the event that a fault asks for here; false: none does.
  bool PostFault(sim::CmApi::FaultPoint point);
  bool destroyed() const;
  void Notify(sim::CmEvent event);
  void ReleaseEvent();
  // Listener, with mutex_ held: tells of requests that were held back; starts the gate's timer if it wants one.
  void Announce(RequestGate::Events& requests);
  void StartGateTimer();
  void OnRequestTouched();  // without
  // A request: the program works on it, so that the listener may tell of the next.
  void TouchRequest();
  // A connection request as an identifier of its own. nullptr and errno.
  std::shared_ptr<Identifier> AdoptRequest(Event& event);
  int BindDevice(const transport::SocketAddress& local);
  void SetSource(const transport::SocketAddress& address);
  void SetDestination(const transport::SocketAddress& address);
  transport::SocketAddress source() const;
  transport::SocketAddress destination() const;
  Result<sim::ConnectParameters, int> Parameters(const rdma_conn_param* given) const;
  ibv_qp* QueuePairFor(const rdma_conn_param* parameters);
  int FillXrcDefaults(ibv_srq_init_attr_ex* attributes);
  ibv_qp* StandIn();
  void DestroyStandIn();
  void FillPath();
  // The address vector that reaches `destination` from this identifier's source (ibv_create_ah).
  ibv_ah_attr AddressVector(const ibv_gid& destination) const;
  Result<sim::ConnectParameters, int> DatagramParameters(const rdma_conn_param* given) const;
  // multicast.cc: attaches the queue pair when the program gets the event of a join. 0 or an errno.
  int AttachGroup(uint64_t join);
  void LeaveAllGroups(bool forget);
  int CreateCompletionQueues(uint32_t send_size, uint32_t receive_size);
  void DestroyCompletionQueues();
  std::shared_ptr<sim::Endpoint> endpoint() const;
  void ShowLocalAddress();
  void FailQueuePair();

  mutable std::mutex mutex_;  // guards what is next
  std::condition_variable acknowledged_;
  State state_ = State::kIdle;
  bool destroyed_ = false;
  bool disconnect_reported_ = false;
  int unacknowledged_ = 0;
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<sim::Endpoint> endpoint_;
  RequestGate requests_;  // a listener's
  bool resolving_info_ = false;  // until the program has fetched it, or heard that there is none
  std::unique_ptr<rdma_addrinfo, void (*)(rdma_addrinfo*)> resolved_info_{nullptr, rdma_freeaddrinfo};

  // Only the program's calls touch these.
  bool synchronous_;
  std::shared_ptr<sim::CmListener> listener_;
  Device* device_ = nullptr;
  transport::PortReservation port_;
  bool port_was_chosen_ = false;  // by us, the program bound to port 0
  bool reuse_address_ = false;
  bool only_v6_ = false;
  std::optional<uint8_t> ack_timeout_;  // RDMA_OPTION_ID_ACK_TIMEOUT
  std::weak_ptr<Identifier> asked_;  // of a request: the listener, until the program touches the request
  uint8_t requested_responder_resources_ = 0;  // passive side: what the peer asked for
  uint8_t requested_initiator_depth_ = 0;
  struct Membership {
    uint64_t join;
    transport::SocketAddress group;
    bool receive;
    bool attached;  // the queue pair is
  };
  std::vector<Membership> groups_;
  uint64_t last_join_ = 0;
  ibv_qp* external_qp_ = nullptr;  // named by its number in rdma_conn_param, not created here
  ibv_qp* stand_in_ = nullptr;     // see QueuePairFor
  std::vector<uint8_t> connect_data_;
  std::optional<ibv_qp_init_attr> queue_pair_template_;  // passive rdma_create_ep
  std::unique_ptr<ibv_sa_path_rec> path_;

  std::shared_ptr<Identifier> self_;  // the program's reference
};

// The engine inside libibverbs. nullptr: that libibverbs is not Weft's, or of another version (a line says so, once).
sim::CmApi* Engine();

}  // namespace weft::cm

#endif  // CM_IDENTIFIER_H_
