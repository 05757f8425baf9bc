#include "wires/sctp/channel/session_faults.h"

#include <algorithm>
#include <chrono>

#include "base/log.h"

namespace weft::sctp {

using transport::Duration;
using transport::Time;

uint64_t SessionFaults::Limit(uint64_t consumed, uint64_t appended) {
  if (silent() || end() != End::kNone) return consumed;
  const Time now = network_.Now();
  if (appended > seen_) {
    seen_ = appended;
    const Duration delay = std::max(faults_.Delay(), Duration(0));
    if (delay.count() != 0 || !delayed_.empty()) {
      const Time last = delayed_.empty() ? Time{} : delayed_.back().when;
      delayed_.push_back({appended, std::max(now + delay, last)});
    }
  }
  uint64_t limit = UINT64_MAX;
  if (!delayed_.empty()) {
    limit = consumed;
    while (!delayed_.empty() && delayed_.front().when <= now) {
      limit = std::max(limit, delayed_.front().position);
      delayed_.pop_front();
    }
    if (delayed_.empty()) {
      limit = UINT64_MAX;
    } else {
      faults_.WakeAt(delayed_.front().when);
    }
  }
  // A message that begins before a limit goes out whole.
  if (const uint64_t until = faults_.UntilByteFault(); until < UINT64_MAX - consumed) limit = std::min(limit, consumed + until);
  if (faults_.bits_per_second() != 0) {
    if (may_send_from_ > now) {
      faults_.WakeAt(may_send_from_);
      return consumed;
    }
    limit = std::min(limit, consumed + 1);
  }
  return limit;
}

bool SessionFaults::Sent(uint64_t consumed) {
  const uint64_t bytes = consumed - sent_;
  sent_ = consumed;
  if (bytes == 0) return false;
  if (const uint64_t rate = faults_.bits_per_second(); rate != 0) {
    const Time now = network_.Now();
    const double seconds = static_cast<double>(bytes) * 8 / static_cast<double>(rate);
    may_send_from_ = std::max(may_send_from_, now - std::chrono::milliseconds(1)) + Duration(static_cast<int64_t>(seconds * 1e9));
    faults_.WakeAt(may_send_from_);
  }
  faults_.Passed(bytes);
  return Update();
}

bool SessionFaults::Received(uint64_t bytes) {
  if (bytes == 0) return false;
  faults_.Passed(bytes);
  return Update();
}

bool SessionFaults::StrikeCorruption() {
  if (!faults_.CorruptionIsDue()) return false;
  return faults_.StrikeCorruption(Format("a bit of a packet inverted after %llu bytes", static_cast<unsigned long long>(faults_.passed())));
}

}  // namespace weft::sctp
