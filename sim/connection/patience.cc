#include "sim/connection/patience.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace weft::sim {
namespace {

using transport::Duration;

// Hardware answers within microseconds, a process on a busy machine may not: whatever `timeout` and `retry_cnt` say, a peer has so
// long.
constexpr Duration kShortest = std::chrono::seconds(3);
// A peer that talks but answers nothing has so many times as long: what it says now was under way, or behind other bytes, when it could
// not know of our request yet.
constexpr unsigned kMostPostponements = 7;
// A peer that is known to be gone: the adapter would not know, and try again as long as it was told to. Programs end meanwhile whose peers
// ended before them, with requests under way that nobody waits for. No longer than this, though.
constexpr Duration kLongestGone = std::chrono::milliseconds(500);

}  // namespace

Duration Patience::LimitOf(const ibv_qp_attr& attributes, bool gone) {
  if (attributes.timeout == 0) return gone ? kLongestGone : Duration{};  // for ever
  const auto once = std::chrono::nanoseconds(4096) * (int64_t{1} << attributes.timeout);
  const Duration all = once * (attributes.retry_cnt + 1);
  return gone ? std::min(all, kLongestGone) : std::max(all, kShortest);
}

void Patience::Start() {
  const std::optional<Signs> now = look_();
  if (!now) return;
  const Duration limit = limit_();
  if (limit == Duration{}) return;
  timer_ = timers_.RunAfter(limit, [this, round = ++round_, before = *now] { OnTimer(round, before); });
}

void Patience::OnTimer(uint64_t round, const Signs& before) {
  if (round != round_) return;
  timer_ = 0;
  const std::optional<Signs> now = look_();
  const bool answers = !now || now->progress != before.progress;
  if (answers || (now->heard != before.heard && postponed_ < kMostPostponements)) {
    postponed_ = answers ? 0 : postponed_ + 1;
    return Watch();
  }
  postponed_ = 0;
  give_up_();
}

void Patience::Stop() {
  ++round_;
  postponed_ = 0;
  if (timer_ != 0) timers_.network().Cancel(std::exchange(timer_, 0));
}

}  // namespace weft::sim
