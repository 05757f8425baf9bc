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

// Connects queue pairs that programs connect themselves, by ibv_modify_qp with an exchanged number and GID (RoCE persona). A queue
// pair's number names its process: its upper 16 bits are a TCP port on which that process's RNIC listens, its lower 8 bits count.
// Of the two, the one with the smaller number opens the connection when it goes to RTS; the other does so too if it is in RTS for a while and
// no request came, since its peer may stay in RTR, where it only receives. A request that comes before its queue pair is in RTR waits for it.
// Who opens the connection shows that it knows the packet sequence numbers that the two programs exchanged (rq_psn, sq_psn): on InfiniBand its
// packets would not be taken otherwise. One that is its own peer gets a stream that is its own peer. Thread safe.
class QueuePairPorts final : public PeerFinder {
 public:
  // `settings` and `cm` outlive it.
  QueuePairPorts(const Surroundings& around, const Settings& settings, CmApi& cm);
  ~QueuePairPorts() override;

  // A number for a new queue pair; opens a port when those that there are have given out all of theirs. Errors: the system's (EMFILE).
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
