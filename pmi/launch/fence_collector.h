#ifndef PMI_LAUNCH_FENCE_COLLECTOR_H_
#define PMI_LAUNCH_FENCE_COLLECTOR_H_

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "pmi/launch/frame.h"
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
    size_t bytes = 0;  // of SerializeValues(put), about
  };

  // One more host has ranks of the job, or one less.
  void AddHost() { ++hosts_; }
  std::optional<Entered> RemoveHost() {
    --hosts_;
    return PassOn();
  }
  int hosts() const { return hosts_; }

  // Whether what is held and this fit into one frame. Where they do not, PassOn() comes before Enter().
  bool HasRoomFor(const KeyValues& put) const { return held_.bytes + SizeOfValues(put) <= FrameReader::kLongestPayload; }
  // Those hosts are in the barrier. Nothing: others are not.
  std::optional<Entered> Enter(int hosts, KeyValues put) {
    held_.hosts += hosts;
    held_.bytes += SizeOfValues(put);
    held_.put.insert(held_.put.end(), std::make_move_iterator(put.begin()), std::make_move_iterator(put.end()));
    return passes_ || held_.hosts >= hosts_ ? Take() : std::nullopt;
  }
  // A rank has ended, or there is no room. What is held, if anything is; what comes later goes on at once.
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
