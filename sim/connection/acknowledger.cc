#include "sim/connection/acknowledger.h"

#include <algorithm>
#include <chrono>

namespace weft::sim {
namespace {

using transport::Duration;

// A program that polls usually answers soon, and the acknowledgement goes with its answer; otherwise at the next poll that finds
// nothing, and at the latest so long after.
constexpr Duration kAfter = std::chrono::microseconds(200);
// A program that always answers in time makes every look of the timer a waste, and takes the thread that looks from a processor.
constexpr Duration kLongestTick = std::chrono::milliseconds(1);
// Requests that a peer gets acknowledged in any case, so that its send queue does not run dry.
constexpr uint32_t kMostOwed = 16;
// What nobody waits for goes along with what somebody does, is gathered, or goes so long after: the peer watches for progress.
constexpr Duration kUnwantedAfter = std::chrono::milliseconds(20);
constexpr uint32_t kMostUnwantedOwed = 64;

}  // namespace

void Acknowledger::Later() {
  const bool is_wanted = wanted();
  if (stream_.unacknowledged() >= (is_wanted ? kMostOwed : kMostUnwantedOwed)) return Now();
  if (is_wanted) {
    errand_received_ = stream_.received();
    if (user_.AddErrand()) return;
  }
  if (!timers_[is_wanted].armed) Arm(is_wanted);
}

void Acknowledger::OnErrand() {
  if (stream_.received() != errand_received_) {
    Later();  // the program has just got more to answer
  } else {
    NowAlone();
  }
}

void Acknowledger::Arm(bool wanted) {
  Timer& timer = timers_[wanted];
  const Duration shortest = wanted ? kAfter : kUnwantedAfter;
  timer.after = timer.armed ? std::max(shortest, std::min(2 * timer.after, kLongestTick)) : shortest;
  timer.armed = true;
  timer.received = stream_.received();
  run_(timer.after, kLongestTick, [this, wanted] { OnTimer(wanted); });
}

void Acknowledger::OnTimer(bool wanted) {
  Timer& timer = timers_[wanted];
  const uint32_t received_since = stream_.received() - timer.received;
  if (stream_.unacknowledged() > received_since) {
    timer.armed = false;
    Now();
    send_();
  } else if (received_since != 0) {
    Arm(wanted);  // all that was owed then went along with something: so may what is owed now
  } else {
    timer.armed = false;
  }
}

}  // namespace weft::sim
