#ifndef PMI_LAUNCH_FENCE_COLLECTOR_H_
#define PMI_LAUNCH_FENCE_COLLECTOR_H_

#include <optional>
#include <utility>

#include "pmi/wire/meaning.h"

namespace weft::pmi {

// The barriers of one job at a proxy with others below it: what its hosts put goes to mpiexec once for all of them. When a rank has ended,
// what is here goes on at once, so that mpiexec can see that the others wait in vain.
class FenceCollector {
 public:
  // What hosts that are in the barrier put.
  struct Entered {
    int hosts = 0;
    KeyValues put;
  };

  // One more host has ranks of the job, or one less.
  void AddHost() { ++hosts_; }
  std::optional<Entered> RemoveHost() {
    --hosts_;
    return PassOn();
  }
  int hosts() const { return hosts_; }

  // Those hosts are in the barrier. Nothing: others are not.
  std::optional<Entered> Enter(int hosts, KeyValues put) {
    held_.hosts += hosts;
    held_.put.insert(held_.put.end(), std::make_move_iterator(put.begin()), std::make_move_iterator(put.end()));
    return passes_ || held_.hosts >= hosts_ ? Take() : std::nullopt;
  }
  // A rank has ended. What is held, if anything is.
  std::optional<Entered> PassOn() {
    passes_ = true;
    return Take();
  }

 private:
  std::optional<Entered> Take() { return held_.hosts == 0 ? std::nullopt : std::optional(std::exchange(held_, {})); }

  int hosts_ = 0;
  bool passes_ = false;
  Entered held_;
};

}  // namespace weft::pmi

#endif  // PMI_LAUNCH_FENCE_COLLECTOR_H_
