#include "mpi_hybrid/p2p/host_wait.h"

#include <sched.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/core/pause.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {

// Among what Progress sleeps on: the bell, for all waits of this process.
class HostWaits final : public ProgressStage {
 public:
  static HostWaits& Get() {
    static auto* const waits = new HostWaits;  // used until the process ends
    return *waits;
  }

  void Add(HostWait& wait) {
    if (waits_.empty()) Progress::AddStage(this);
    wait.told_ = false;
    waits_.push_back(&wait);
  }
  void Remove(HostWait& wait) {
    wait.Disarm();
    waits_.erase(std::find(waits_.begin(), waits_.end(), &wait));
    if (waits_.empty()) Progress::RemoveStage(this);
  }

  // True when a wait has ended: of this thread, or of one that sleeps behind it and has to be told. Once for each, since
  // who polls in vain lets the other have the lock.
  bool Poll() override {
    bool news = false;
    for (HostWait* wait : waits_) {
      if (wait->IsOver() && !std::exchange(wait->told_, true)) news = true;
    }
    if (news) Progress::Wake();
    return news;
  }

  // A wait that is over and was told is another thread's, which goes on when it gets the lock: not before this one sleeps.
  bool Arm() override {
    if (host::Segment* const segment = host::ThisHost()) segment->WillSleep();
    return std::all_of(waits_.begin(), waits_.end(), [](HostWait* wait) { return wait->told_ || wait->Arm(); });
  }

  void OnAwake() override {
    for (HostWait* wait : waits_) wait->Disarm();
    // Also of what rang for waits that are over: it would end the next sleep at once.
    if (host::Segment* const segment = host::ThisHost()) {
      segment->IsAwake();
    } else {
      host::OwnBell().Silence();
    }
  }

  bool Serves() const override { return false; }
  // The device watches the segment's.
  int fd() const override { return host::ThisHost() != nullptr ? -1 : host::OwnBell().fd(); }

 private:
  std::vector<HostWait*> waits_;
};

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
