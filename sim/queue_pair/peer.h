#ifndef SIM_QUEUE_PAIR_PEER_H_
#define SIM_QUEUE_PAIR_PEER_H_

#include <cstdint>
#include <memory>

#include "rdmap/delivery.h"
#include "transport/socket_address.h"

namespace weft::sim {

class QueuePair;

// The role of a queue pair towards its peer. Those of XRC come in pairs: one sends, the other receives.
enum class Service : uint8_t { kReliable = 1, kUnreliable = 2, kXrcSend = 3, kXrcReceive = 4 };

// The peer that a queue pair names when it goes to RTR (ibv_modify_qp(3): dest_qp_num and ah_attr.grh.dgid).
struct PeerChoice {
  uint32_t number = 0;
  transport::SocketAddress address;      // of the peer; its port is the peer's number >> 8
  bool own_host = false;                 // the peer is on this host, whatever its address
  transport::SocketAddress local;        // our address, port 0: the source of the connection
  Service service = Service::kReliable;  // our own
  rdmap::Delivery delivery = rdmap::Delivery::kReliable;
  uint16_t ird = 0, ord = 0;             // RDMA Reads that we accept, and that we want to have outstanding
  uint32_t receive_number = 0;           // rq_psn: the peer's sq_psn
};

// Connects queue pairs with the peers that their programs name. Thread safe.
class PeerFinder {
 public:
  virtual ~PeerFinder() = default;
  // `qp` is in RTR. Looks for that peer until Forget().
  virtual void Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice) = 0;
  // The queue pair is in RTS, with the sq_psn `send_number`.
  virtual void Dial(uint32_t number, uint32_t send_number) = 0;
  // Stops looking. After return it gets no connection, except for one that is being handed over right now.
  virtual void Forget(uint32_t number) = 0;
  // The number may be reused.
  virtual void Release(uint32_t number) = 0;
};

}  // namespace weft::sim

#endif  // SIM_QUEUE_PAIR_PEER_H_
