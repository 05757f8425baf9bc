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

// An rdma_cm_id: the public structure (its fields are filled as rdma-core fills them), what it is bound to, and the
// event that it waits for. Owns itself until Destroy; events and the engine share it.
//
// Functions return 0 or a positive errno. Events arrive on the RNIC's thread. Apart from them, one program thread at a
// time uses an identifier; rdma_disconnect, rdma_get_cm_event and rdma_ack_cm_event may run concurrently.
class Identifier : public rdma_cm_id, public sim::CmObserver, public std::enable_shared_from_this<Identifier> {
 public:
  enum class State : uint8_t {
    kIdle,
    kBound,
    kAddressResolved,
    kRouteResolved,
    kConnecting,
    kRequested,  // passive side, not answered yet
    kAccepting,  // accepted; kEstablished has not arrived
    kEstablished,
    kDisconnected,
    kFailed,  // rejected, unreachable, or lost during set-up
    kListening,
  };

  // `on` nullptr: synchronous operation, with a channel of its own. nullptr and errno: no descriptor is left.
  static std::shared_ptr<Identifier> Create(Channel* on, void* context, rdma_port_space port_space,
                                            ibv_qp_type qp_type);
  // rdma_create_id for queue pairs of type `qp_type`, which the port space must allow. 0 or an errno.
  static int Make(rdma_event_channel* channel, void* context, rdma_port_space port_space, ibv_qp_type qp_type, rdma_cm_id** made);
  static Identifier* From(rdma_cm_id* id) { return static_cast<Identifier*>(id); }
  // Looks up a pointer from the program. The identifier may already be destroyed, or another thread may destroy it now.
  // nullptr: there is no such identifier.
  static std::shared_ptr<Identifier> Find(rdma_cm_id* id);
  ~Identifier() override;
  Identifier(const Identifier&) = delete;
  Identifier& operator=(const Identifier&) = delete;

  // Cancels operations, drops events that the program has not fetched, and waits for those that it has not
  // acknowledged.
  void Destroy();
  // rdma_migrate_id. `to` nullptr: synchronous operation.
  int Migrate(Channel* to);
  bool synchronous() const { return synchronous_; }
  // An identifier for unreliable datagrams: finds queue pairs, but connects none.
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

  // addrinfo.cc: starts rdma_getaddrinfo for rdma_query_addrinfo; the outcome is an event. EBUSY: the program has not
  // fetched the last outcome.
  int ResolveAddressInfo(const char* node, const char* service, const rdma_addrinfo* hints);
  // ENOENT: nothing was found, or it was already fetched.
  int TakeAddressInfo(rdma_addrinfo** info);

  // Puts an event on the channel. `argument` is param.arg of rdma-core 60.
  void Post(rdma_cm_event_type type, int status, uint64_t argument = 0);

  // queue_pair.cc
  int CreateQueuePair(ibv_qp_init_attr_ex* attributes);
  void DestroyQueuePair();
  int CreateSharedReceiveQueue(ibv_srq_init_attr_ex* attributes);
  void DestroySharedReceiveQueue();
  int InitQueuePairAttributes(ibv_qp_attr* attributes, int* mask);

  // endpoint.cc: synchronous operation and rdma_create_ep.
  //
  // Synchronous: waits for the outcome of the started operation, and shows it as `event`. Otherwise returns 0 at once.
  int Complete();
  int CompleteDisconnect();
  int TakeRequest(rdma_cm_id** request);
  void RememberQueuePair(const ibv_qp_init_attr& attributes) { queue_pair_template_ = attributes; }
  void RememberConnectData(const void* data, size_t length);

  // channel.cc: between the channel and the program.
  //
  // Returns false if the receiver of the event no longer exists.
  bool BeginDelivery(Event& event);
  void Acknowledge();

  void OnCmEvent(sim::CmEvent event) override;

 private:
  Identifier(std::shared_ptr<Channel> on, bool synchronous);

  State state() const;
  void set_state(State state);
  // Posts the event that a fault asks for at this point. Returns false if there is none.
  bool PostFault(sim::CmApi::FaultPoint point);
  bool destroyed() const;
  void Notify(sim::CmEvent event);
  void ReleaseEvent();
  // Listener, with mutex_ held: announces requests that were held back. Starts the gate's timer if the gate needs it.
  void Announce(RequestGate::Events& requests);
  void StartGateTimer();
  void OnRequestTouched();  // without mutex_
  // A request: the program has begun to work on it, so the listener may announce the next.
  void TouchRequest();
  // Makes an identifier of a connection request. nullptr and errno.
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
  // The address vector (ibv_create_ah) that reaches `destination` from this identifier's source address.
  ibv_ah_attr AddressVector(const ibv_gid& destination) const;
  Result<sim::ConnectParameters, int> DatagramParameters(const rdma_conn_param* given) const;
  // multicast.cc: attaches the queue pair when the program fetches the event of a join. 0 or an errno.
  int AttachGroup(uint64_t join);
  void LeaveAllGroups(bool forget);
  int CreateCompletionQueues(uint32_t send_size, uint32_t receive_size);
  void DestroyCompletionQueues();
  std::shared_ptr<sim::Endpoint> endpoint() const;
  void ShowLocalAddress();
  void FailQueuePair();

  mutable std::mutex mutex_;  // guards the members below
  std::condition_variable acknowledged_;
  State state_ = State::kIdle;
  bool destroyed_ = false;
  bool disconnect_reported_ = false;
  int unacknowledged_ = 0;
  std::shared_ptr<Channel> channel_;
  std::shared_ptr<sim::Endpoint> endpoint_;
  RequestGate requests_;  // for a listener
  bool resolving_info_ = false;  // until the program has fetched the outcome, or the event has reported an error
  std::unique_ptr<rdma_addrinfo, void (*)(rdma_addrinfo*)> resolved_info_{nullptr, rdma_freeaddrinfo};

  // Only calls of the program use these.
  bool synchronous_;
  std::shared_ptr<sim::CmListener> listener_;
  Device* device_ = nullptr;
  transport::PortReservation port_;
  bool port_was_chosen_ = false;  // Weft chose the port, because the program bound to port 0
  bool reuse_address_ = false;
  bool only_v6_ = false;
  std::optional<uint8_t> ack_timeout_;  // RDMA_OPTION_ID_ACK_TIMEOUT
  std::weak_ptr<Identifier> asked_;  // for a request: its listener, until the program uses the request
  uint8_t requested_responder_resources_ = 0;  // passive side: the value that the peer asked for
  uint8_t requested_initiator_depth_ = 0;
  struct Membership {
    uint64_t join;
    transport::SocketAddress group;
    bool receive;
    bool attached;  // whether the queue pair is attached
  };
  std::vector<Membership> groups_;
  uint64_t last_join_ = 0;
  ibv_qp* external_qp_ = nullptr;  // named by its number in rdma_conn_param, not created here
  ibv_qp* stand_in_ = nullptr;     // see QueuePairFor
  std::vector<uint8_t> connect_data_;
  std::optional<ibv_qp_init_attr> queue_pair_template_;  // for a passive rdma_create_ep
  std::unique_ptr<ibv_sa_path_rec> path_;

  std::shared_ptr<Identifier> self_;  // the program's reference
};

// The engine inside libibverbs. nullptr: that libibverbs is not Weft's, or has another version (logged once).
sim::CmApi* Engine();

}  // namespace weft::cm

#endif  // CM_IDENTIFIER_H_
