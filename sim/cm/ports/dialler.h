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

// One queue pair's attempts to reach its peer, again and again until it is reached or nobody wants it any more.
class Dialler final : public CmObserver, public std::enable_shared_from_this<Dialler> {
 public:
  // Makes `endpoint` that of the search that this dials for. False: it dials for none any more.
  using Begin = std::function<bool(Dialler& self, const std::shared_ptr<Endpoint>& endpoint)>;
  // The connection that it made is over.
  using End = std::function<void(Endpoint& endpoint)>;

  // For `qp`, which has `number` and is in RTS with that sq_psn. `again`: it had a connection with the peer, that was of no use: if the peer is not
  // to be found any more, it is gone.
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
  bool warned_ = false;
  std::weak_ptr<Endpoint> endpoint_;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_DIALLER_H_
