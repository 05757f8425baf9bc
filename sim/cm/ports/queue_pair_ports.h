#ifndef SIM_CM_PORTS_QUEUE_PAIR_PORTS_H_
#define SIM_CM_PORTS_QUEUE_PAIR_PORTS_H_

#include <cstdint>
#include <memory>

#include "base/result.h"
#include "base/settings.h"
#include "sim/cm/api.h"
#include "sim/cm/surroundings.h"
#include "sim/queue_pair/peer.h"

namespace weft::sim {

class QueuePair;

// Connects queue pairs that programs connect themselves, by ibv_modify_qp with an exchanged number and GID (RoCE
// persona). The number of a queue pair identifies its process: the upper 16 bits are a TCP port on which that process's
// RNIC listens, the lower 8 bits count.
//
// The queue pair with the smaller number opens the connection when it goes to RTS. The other one opens it if it is in
// RTS for a while and no request arrives, since its peer may stay in RTR, where it only receives. A request that
// arrives before its queue pair is in RTR waits. The end that opens the connection proves that it knows the packet
// sequence numbers that the two programs exchanged (rq_psn, sq_psn); on InfiniBand its packets would otherwise be
// dropped. A queue pair that names itself as its peer gets a loopback stream. Thread safe.
class QueuePairPorts final : public PeerFinder {
 public:
  // `settings` and `cm` outlive this object.
  QueuePairPorts(const Surroundings& around, const Settings& settings, CmApi& cm);
  ~QueuePairPorts() override;

  // Returns a number for a new queue pair. Opens a port if all numbers of the open ones are used. Errors: those of the
  // system (EMFILE).
  Result<uint32_t, int> Allocate();
  void Release(uint32_t number) override;

  void Connect(std::shared_ptr<QueuePair> qp, PeerChoice choice) override;
  void Dial(uint32_t number, uint32_t send_number) override;
  void Forget(uint32_t number) override;

 private:
  class State;
  const std::shared_ptr<State> state_;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_QUEUE_PAIR_PORTS_H_
