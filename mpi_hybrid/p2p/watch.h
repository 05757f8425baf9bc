#ifndef MPI_HYBRID_P2P_WATCH_H_
#define MPI_HYBRID_P2P_WATCH_H_

#include <algorithm>
#include <chrono>
#include <optional>

namespace weft::mpi {

// Decides when a sleeping wait connects to the processes that it waits for (Device::ConnectToAwaited), so that it
// learns of their death: after 250 ms without an event. If such an attempt ends without telling whether the process
// lives, it is repeated after the same time. No I/O.
class Watch {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kAfter = std::chrono::milliseconds(250);

  // Called before a sleep. Returns its longest time in milliseconds; -1: no limit. `unreached`: Engine::unreached().
  int BeforeSleep(Clock::time_point now, unsigned unreached) {
    if (watches_ && unreached == unreached_) return -1;
    watches_ = false;
    unreached_ = unreached;
    if (!due_) due_ = now + kAfter;
    return static_cast<int>(std::max<long>(std::chrono::ceil<std::chrono::milliseconds>(*due_ - now).count(), 0));
  }
  // Called after the sleep. `ready`: an event came. Returns whether to connect now.
  bool AfterSleep(Clock::time_point now, bool ready) {
    if (watches_) return false;
    if (ready) due_.reset();
    if (!due_ || now < *due_) return false;
    due_.reset();
    return watches_ = true;
  }

 private:
  bool watches_ = false;
  unsigned unreached_ = 0;
  std::optional<Clock::time_point> due_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_WATCH_H_
