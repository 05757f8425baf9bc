#include "mpi_hybrid/p2p/host_wait.h"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/core/pause.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/p2p/host_waits.h"
#include "mpi_hybrid/p2p/process_device.h"

namespace weft::mpi {

HostWaits& HostWaits::Get() {
  static auto* const waits = new HostWaits;  // used until the process ends
  return *waits;
}

void HostWaits::Add(HostWait& wait) {
  if (waits_.empty()) Progress::AddStage(this);
  wait.told_ = false;
  waits_.push_back(&wait);
}

void HostWaits::Remove(HostWait& wait) {
  wait.Disarm();
  waits_.erase(std::find(waits_.begin(), waits_.end(), &wait));
  if (waits_.empty()) return Progress::RemoveStage(this);
  // Another thread sleeps, perhaps for the same words, and is to be rung for them as before.
  if (armed_ && !ArmAll()) Progress::Wake();
}

bool HostWaits::Poll() {
  bool news = false;
  for (HostWait* wait : waits_) {
    const bool over = wait->IsOver();
    if (std::exchange(wait->told_, over) != over) news |= over;
  }
  if (news) Progress::Wake();
  return news;
}

bool HostWaits::ArmAll() {
  bool all = true;
  for (HostWait* wait : waits_) all &= wait->Arm() || wait->told_;
  return all;
}

bool HostWaits::Arm() {
  armed_ = true;
  if (host::Segment* const segment = host::ThisHost()) segment->WillSleep();
  return ArmAll();
}

void HostWaits::OnAwake() {
  if (!std::exchange(armed_, false)) return;
  for (HostWait* wait : waits_) wait->Disarm();
  // Also of what rang for waits that are over: it would end the next sleep at once.
  if (host::Segment* const segment = host::ThisHost()) {
    segment->IsAwake();
  } else {
    host::OwnBell().Silence();
  }
}

int HostWaits::fd() const { return host::ThisHost() != nullptr ? -1 : host::OwnBell().fd(); }

namespace {

constexpr int kClockEvery = 16;  // looks
constexpr int kYields = 30;

}  // namespace

HostWait::Scope::Scope(HostWait& wait) : wait_(wait) { HostWaits::Get().Add(wait); }
HostWait::Scope::~Scope() { HostWaits::Get().Remove(wait_); }

HostWait::Spinner::Spinner(std::chrono::microseconds limit)
    : limit_(limit), spins_(SpinTime().count() != 0) {}

bool HostWait::Spinner::Goes() {
  if (turns_++ == 0) return true;
  if (!spins_) return Yields();
  if (turns_ > kEager) Pause();
  if (turns_ % kClockEvery != 0) return true;
  const auto now = std::chrono::steady_clock::now();
  if (turns_ == kClockEvery) end_ = now + limit_;
  if (now < end_ && !SharesProcessor()) return true;
  spins_ = false;
  spun_ = true;
  turns_ = 1;
  return Yields();
}

bool HostWait::Spinner::Yields() {
  if (turns_ > kYields || !(spun_ || HandsProcessorOn())) return false;
  LibraryLock::Release();
  sched_yield();
  LibraryLock::Acquire();
  return true;
}

}  // namespace weft::mpi
