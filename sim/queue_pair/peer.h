#ifndef SIM_QUEUE_PAIR_PEER_H_
#define SIM_QUEUE_PAIR_PEER_H_

#include <cstdint>
#include <memory>

#include "rdmap/delivery.h"
#include "transport/socket_address.h"

namespace weft::sim {

class QueuePair;

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
  uint16_t ird = 0, ord = 0;             // RDMA Reads that we take, and want to have outstanding
  uint32_t receive_number = 0;           // rq_psn: the peer's sq_psn
};

// Connects queue pairs with the peers that their programs name. Thread safe.
class PeerFinder {
 public:
  virtual ~PeerFinder() = default;
  // `qp` is in RTR and looks for that peer until Forget().
  virtual void Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice) = 0;
  // It is in RTS, with that sq_psn.
  virtual void Dial(uint32_t number, uint32_t send_number) = 0;
  // It looks no more. No connection is handed to it after this returned, but for one that is just being.
  virtual void Forget(uint32_t number) = 0;
  // Its number may be given to another.
  virtual void Release(uint32_t number) = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_PEER_H_
