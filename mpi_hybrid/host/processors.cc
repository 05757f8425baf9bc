#include "mpi_hybrid/host/processors.h"

#include <sched.h>

namespace weft::mpi::host {
namespace {

constexpr std::chrono::milliseconds kBetweenMoves{10};

// Through a mask of one processor, and back.
void MoveTo(int processor, const cpu_set_t& allowed) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  if (sched_setaffinity(0, sizeof(one), &one) == 0) (void)sched_setaffinity(0, sizeof(allowed), &allowed);
}

}  // namespace

int Processors::Note() {
  const int here = sched_getcpu();
  if (here != said_) {
    said_ = here;
    segment_.processor_of(segment_.place()).store(static_cast<uint32_t>(here) + 1, std::memory_order_relaxed);
  }
  return here;
}

bool Processors::FindOther(int here) {
  const uint32_t sought = static_cast<uint32_t>(here) + 1;
  for (int place = 0; place < segment_.places(); ++place) {
    if (place == segment_.place() || segment_.processor_of(place).load(std::memory_order_relaxed) != sought) continue;
    other_ = place;
    return true;
  }
  return false;
}

// The earlier one stays, or both would meet again.
bool Processors::Move(int here) {
  if (other_ > segment_.place()) return false;
  const Clock::time_point now = Clock::now();
  if (now - moved_ < kBetweenMoves) return false;
  moved_ = now;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return false;
  for (int i = 1; i < CPU_SETSIZE; ++i) {
    const int processor = (here + i) % CPU_SETSIZE;
    if (!CPU_ISSET(processor, &allowed) || FindOther(processor)) continue;
    MoveTo(processor, allowed);
    return Note() != here;
  }
  return false;
}

}  // namespace weft::mpi::host
