#ifndef PMI_LAUNCH_FENCE_COLLECTOR_H_
#define PMI_LAUNCH_FENCE_COLLECTOR_H_

#include <cstddef>
#include <iterator>
#include <optional>
#include <utility>

#include "pmi/launch/frame.h"
#include "pmi/wire/meaning.h"

namespace weft::pmi {

// The barriers of one job at a proxy with other proxies below it: the values that its hosts put are sent to mpiexec
// once for all of them. When a rank has ended, collected values are sent at once, so that mpiexec can see that the
// other ranks wait in vain.
class FenceCollector {
 public:
  // The values of hosts that have entered the barrier.
  struct Entered {
    int hosts = 0;
    KeyValues put;
    size_t bytes = 0;  // approximate size of SerializeValues(put)
  };

  // Another host has ranks of the job, or a host no longer has.
  void AddHost() { ++hosts_; }
  std::optional<Entered> RemoveHost() {
    --hosts_;
    return PassOn();
  }
  int hosts() const { return hosts_; }

  // Whether the collected values and `put` fit into one frame. If not, call PassOn() before Enter().
  bool HasRoomFor(const KeyValues& put) const { return held_.bytes + SizeOfValues(put) <= FrameReader::kLongestPayload; }
  // These hosts have entered the barrier. nullopt: other hosts have not.
  std::optional<Entered> Enter(int hosts, KeyValues put) {
    held_.hosts += hosts;
    held_.bytes += SizeOfValues(put);
    held_.put.insert(held_.put.end(), std::make_move_iterator(put.begin()), std::make_move_iterator(put.end()));
    return passes_ || held_.hosts >= hosts_ ? Take() : std::nullopt;
  }
  // A rank has ended, or there is no space. Returns the collected values, if any; later values are returned at once.
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
