#ifndef SIM_QUEUE_PAIR_PORTS_H_
#define SIM_QUEUE_PAIR_PORTS_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>

#include "base/result.h"
#include "rdmap/delivery.h"
#include "sim/cm_api.h"
#include "transport/network.h"
#include "transport/socket_address.h"

namespace weft::sim {

class QueuePair;
class Rnic;

// What a queue pair is to its peer. Those of XRC come in twos: one sends, the other receives.
enum class Service : uint8_t { kReliable = 1, kUnreliable = 2, kXrcSend = 3, kXrcReceive = 4 };

// Whom a queue pair that goes to RTR wants to talk to (ibv_modify_qp(3): dest_qp_num and ah_attr.grh.dgid).
struct PeerChoice {
  uint32_t number = 0;
  transport::SocketAddress address;      // of the peer; its port is the peer's number >> 8
  bool own_host = false;                 // it is on this host, whatever its address
  transport::SocketAddress local;        // ours, port 0: where the connection comes from
  Service service = Service::kReliable;  // our own
  rdmap::Delivery delivery = rdmap::Delivery::kReliable;
  ConnectParameters parameters;          // without private data
  uint32_t receive_number = 0;           // rq_psn: the peer's sq_psn
};

// Connects queue pairs that programs connect themselves, by ibv_modify_qp with an exchanged number and GID (RoCE persona). A queue
// pair's number names its process: its upper 16 bits are a TCP port on which that process's RNIC listens, its lower 8 bits count.
// Of the two, the one with the smaller number opens the connection when it goes to RTS; the other does so too if it is in RTS for a while and
// no request came, since its peer may stay in RTR, where it only receives. A request that comes before its queue pair is in RTR waits for it.
// Who opens the connection shows that it knows the packet sequence numbers that the two programs exchanged (rq_psn, sq_psn): on InfiniBand its
// packets would not be taken otherwise. One that is its own peer gets a stream that is its own peer. Thread safe; lives as long as the RNIC.
class QueuePairPorts {
 public:
  explicit QueuePairPorts(Rnic& rnic);
  ~QueuePairPorts();

  // A number for a new queue pair; opens a port when those that there are have given out all of theirs. Errors: the system's (EMFILE).
  Result<uint32_t, int> Allocate();
  void Release(uint32_t number);

  // `qp` is in RTR and looks for that peer until Forget().
  void Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice);
  // It is in RTS, with that sq_psn.
  void Dial(uint32_t number, uint32_t send_number);
  // It looks no more. No connection is handed to it after this returned, but for one that is just being.
  void Forget(uint32_t number);

 private:
  struct State;
  class Requests;
  class Dialler;
  void ConnectToItself(QueuePair& qp, const PeerChoice& choice);
  const std::shared_ptr<State> state_;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_PORTS_H_
