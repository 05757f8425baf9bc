#ifndef SIM_CONNECTION_PATIENCE_H_
#define SIM_CONNECTION_PATIENCE_H_

#include <infiniband/verbs.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "sim/connection/user.h"

namespace weft::sim {

// Gives up on a peer that does not answer. Guarded by the engine. `timers` outlives it; nothing is called after the
// timers are gone.
class Patience {
 public:
  // Signs of life of the peer.
  struct Signs {
    uint64_t progress = 0;  // increases when the peer takes or answers something
    uint64_t heard = 0;     // bytes received from the peer
  };
  // `look`: nullopt while nothing is expected from the peer. `limit`: how long the peer has; 0: for ever.
  Patience(EngineTimers& timers, std::function<std::optional<Signs>()> look, std::function<transport::Duration()> limit,
           std::function<void()> give_up)
      : timers_(timers), look_(std::move(look)), limit_(std::move(limit)), give_up_(std::move(give_up)) {}

  // Starts to watch, unless it already does.
  void Watch() {
    if (timer_ == 0) Start();
  }
  void Stop();

  // The limit that a program sets by `timeout` and `retry_cnt` of ibv_modify_qp(3). `gone`: the peer is known to be
  // gone.
  static transport::Duration LimitOf(const ibv_qp_attr& attributes, bool gone);

 private:
  void Start();
  void OnTimer(uint64_t round, const Signs& before);

  EngineTimers& timers_;
  const std::function<std::optional<Signs>()> look_;
  const std::function<transport::Duration()> limit_;
  const std::function<void()> give_up_;
  transport::TimerId timer_ = 0;
  uint64_t round_ = 0;      // number of the timer: identifies one that was stopped while it waited for the engine
  unsigned postponed_ = 0;  // how often in a row the peer sent something, but no answer
};

}  // namespace weft::sim

#endif  // SIM_CONNECTION_PATIENCE_H_
