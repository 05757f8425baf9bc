#include "faults/connection_faults.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/log.h"

namespace weft::faults {
namespace {

using transport::Duration;
using transport::Time;

constexpr Kind kKinds[] = {Kind::kCut, Kind::kReset, Kind::kBlackhole, Kind::kDelay, Kind::kBandwidth, Kind::kCorrupt};

const char* WhatStrikes(Kind kind) {
  switch (kind) {
    case Kind::kCut:
      return "cut";
    case Kind::kReset:
      return "reset";
    case Kind::kBlackhole:
      return "nothing passes any more";
    case Kind::kDelay:
      return "delayed";
    case Kind::kBandwidth:
      return "limited";
    default:
      return "";
  }
}

}  // namespace

bool ConcernsConnection(const ConnectionInfo& info, const transport::SocketAddress& peer) {
  const Place place{.qp = info.qp, .peer = &peer, .device = info.device.c_str()};
  if (PortIsDown(info.device.c_str())) return true;
  return std::any_of(std::begin(kKinds), std::end(kKinds), [&](Kind kind) { return Injector::Process().Has(kind, place); });
}

bool WantsCrc(const ConnectionInfo& info, const transport::SocketAddress& peer) {
  return Injector::Process().Has(Kind::kCorrupt, {.qp = info.qp, .peer = &peer, .device = info.device.c_str()});
}

ConnectionFaults::ConnectionFaults(ConnectionInfo info, const transport::SocketAddress& peer, transport::Network& network,
                                   std::function<void()> wake)
    : info_(std::move(info)), peer_(peer), network_(network), waker_(std::make_shared<Waker>()), established_(network.Now()) {
  waker_->wake = std::move(wake);
  Reselect();
}

ConnectionFaults::~ConnectionFaults() {
  std::lock_guard lock(waker_->mutex);
  waker_->wake = nullptr;
}

void ConnectionFaults::Reselect() {
  armed_.clear();  // a plan is replaced as a whole
  const Place place{.qp = info_.qp, .peer = &peer_, .device = info_.device.c_str()};
  for (const Kind kind : kKinds) Select(kind, place);
}

void ConnectionFaults::Select(Kind kind, const Place& place) {
  for (const auto& active : Injector::Process().Choose(kind, place)) {
    if (kind == Kind::kCorrupt && !info_.crc) {
      LogWarning(Where("has no CRC, because it was established before the fault was set: nothing is corrupted"));
      continue;
    }
    armed_.push_back({.active = active, .from = network_.Now() + active->fault.after});
  }
}

std::string ConnectionFaults::Where(const std::string& what) const {
  return Format("qp 0x%x, peer %s: ", info_.qp, peer_.ToString().c_str()) + what;
}

bool ConnectionFaults::IsDue(const Armed& armed, Time now) const {
  return now >= armed.from && passed_ >= Of(armed).after_bytes;
}

bool ConnectionFaults::Strike(Armed& armed, Time now) {
  if (armed.struck) return true;
  const std::string what = WhatStrikes(Of(armed).kind) + Format(" after %llu bytes, %lld ms", static_cast<unsigned long long>(passed_),
                                                           static_cast<long long>((now - established_) / std::chrono::milliseconds(1)));
  if (!Injector::Process().Strike(*armed.active, Where(what))) {
    armed.over = true;
    return false;
  }
  armed.struck = true;
  armed.struck_at = now;
  return true;
}

bool ConnectionFaults::Update() {
  const Time now = network_.Now();
  const bool ended_before = end_ != End::kNone;
  bool shut = PortIsDown(info_.device.c_str());
  uint64_t rate = 0;
  for (Armed& armed : armed_) {
    const Fault& fault = Of(armed);
    if (armed.over || end_ != End::kNone || fault.kind == Kind::kCorrupt) continue;
    if (!armed.struck) {
      if (now < armed.from) WakeAt(armed.from);
      if (!IsDue(armed, now) || !Strike(armed, now)) continue;
    }
    if (fault.Has(kFor)) {
      if (now >= armed.struck_at + fault.lasts) {
        armed.over = true;
        continue;
      }
      WakeAt(armed.struck_at + fault.lasts);
    }
    switch (fault.kind) {
      case Kind::kCut:
        end_ = End::kCut;
        break;
      case Kind::kReset:
        end_ = End::kReset;
        break;
      case Kind::kBlackhole:
        shut = true;
        if (!fault.Has(kGiveUp)) break;
        if (now >= armed.struck_at + fault.give_up) {
          end_ = End::kGivenUp;
        } else {
          WakeAt(armed.struck_at + fault.give_up);
        }
        break;
      case Kind::kBandwidth:
        rate = rate == 0 ? fault.bits_per_second : std::min(rate, fault.bits_per_second);
        break;
      default:
        break;
    }
  }
  shut_ = shut;
  bits_per_second_ = rate;
  return !ended_before && end_ != End::kNone;
}

Duration ConnectionFaults::Delay() {
  const Time now = network_.Now();
  Duration delay{0};
  for (Armed& armed : armed_) {
    const Fault& fault = Of(armed);
    if (fault.kind != Kind::kDelay || armed.over || !armed.struck || !IsDue(armed, now)) continue;
    delay += fault.time;
    if (fault.jitter.count() == 0) continue;
    const double draw = 2 * Injector::Process().Draw(*armed.active) - 1;
    delay += Duration(static_cast<int64_t>(draw * static_cast<double>(fault.jitter.count())));
  }
  return delay;
}

uint64_t ConnectionFaults::UntilByteFault() const {
  uint64_t until = UINT64_MAX;
  for (const Armed& armed : armed_) {
    const Fault& fault = Of(armed);
    if (armed.struck || armed.over || fault.after_bytes <= passed_ || fault.kind == Kind::kCorrupt) continue;
    until = std::min(until, fault.after_bytes - passed_);
  }
  return until;
}

ConnectionFaults::Armed* ConnectionFaults::Corruption() {
  const Time now = network_.Now();
  for (Armed& armed : armed_) {
    if (Of(armed).kind == Kind::kCorrupt && !armed.over && IsDue(armed, now)) return &armed;
  }
  return nullptr;
}

bool ConnectionFaults::CorruptionIsDue() { return Corruption() != nullptr; }

bool ConnectionFaults::StrikeCorruption(const std::string& what) {
  Armed* const armed = Corruption();
  return armed != nullptr && Injector::Process().Strike(*armed->active, Where(what));
}

void ConnectionFaults::WakeAt(Time when) {
  std::lock_guard lock(waker_->mutex);
  if (when >= waker_->armed) return;
  waker_->armed = when;
  network_.RunAt(when, [waker = waker_, when] {
    std::function<void()> wake;
    {
      std::lock_guard firing(waker->mutex);
      if (waker->armed == when) waker->armed = Time::max();
      wake = waker->wake;
    }
    if (wake) wake();
  });
}

}  // namespace weft::faults
