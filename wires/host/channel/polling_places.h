#ifndef WIRES_HOST_CHANNEL_POLLING_PLACES_H_
#define WIRES_HOST_CHANNEL_POLLING_PLACES_H_

#include <sched.h>

#include <atomic>
#include <cstdint>

namespace weft::host {

// The processor on which each end polls, in shared words (its number plus one; 0: the end does not poll). If both ends
// poll on the same processor, as in a container that has only one, each yields it; otherwise each would wait for the
// end of the other's time slice. A peer that lies only makes us yield in vain. Guarded by the channel's lock. Does not
// own the words.
class PollingPlaces {
 public:
  PollingPlaces(std::atomic<uint32_t>& ours, const std::atomic<uint32_t>& peers) : ours_(ours), peers_(peers) {}

  // This end polls on this thread. Returns whether the other end polls on the same processor; this is looked up from
  // time to time.
  bool Share() {
    if (polls_++ % kPollsPerLook == 0) [[unlikely]] Look();
    return shared_;
  }
  void Stop() {
    ours_.store(0, std::memory_order_relaxed);
    polls_ = 0;
  }

 private:
  static constexpr uint32_t kPollsPerLook = 16;

  void Look() {
    const uint32_t here = static_cast<uint32_t>(sched_getcpu()) + 1;  // 0: the kernel does not tell
    if (ours_.load(std::memory_order_relaxed) != here) ours_.store(here, std::memory_order_relaxed);
    shared_ = here != 0 && peers_.load(std::memory_order_relaxed) == here;
  }

  std::atomic<uint32_t>& ours_;
  const std::atomic<uint32_t>& peers_;
  uint32_t polls_ = 0;
  bool shared_ = false;
};

}  // namespace weft::host

#endif  // WIRES_HOST_CHANNEL_POLLING_PLACES_H_
