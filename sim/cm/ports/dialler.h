#ifndef SIM_CM_PORTS_DIALLER_H_
#define SIM_CM_PORTS_DIALLER_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "sim/cm/api.h"
#include "sim/cm/surroundings.h"
#include "sim/queue_pair/peer.h"
#include "transport/network.h"

namespace weft::sim {

// The attempts of one queue pair to reach its peer. They are repeated until one succeeds or the search ends.
class Dialler final : public CmObserver, public std::enable_shared_from_this<Dialler> {
 public:
  // Makes `endpoint` that of the search for which this dialler works. Returns false if the search has ended.
  using Begin = std::function<bool(Dialler& self, const std::shared_ptr<Endpoint>& endpoint)>;
  // The connection that it made has ended.
  using End = std::function<void(Endpoint& endpoint)>;

  // `qp` has the number `number` and is in RTS with the sq_psn `send_number`. `again`: it had a connection with the
  // peer that was not used; if the peer cannot be found now, it is gone.
  Dialler(const Surroundings& around, Begin begin, End end, const std::shared_ptr<QueuePair>& qp, uint32_t number, const PeerChoice& choice,
          uint32_t send_number, bool again);

  void Start();
  void OnCmEvent(CmEvent event) override;

 private:
  void WarnOfLoopback();
  void TryAgain();

  const Surroundings around_;
  const Begin begin_;
  const End end_;
  const std::weak_ptr<QueuePair> qp_;
  const uint32_t number_;
  PeerChoice choice_;
  ConnectParameters parameters_;
  transport::Duration retry_after_ = std::chrono::milliseconds(5);
  const bool again_;
  bool warned_ = false, shares_memory_ = true;
  std::weak_ptr<Endpoint> endpoint_;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_DIALLER_H_
