#include "mpi_hybrid/rma/host_wait.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/core/pause.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/p2p/progress.h"
#include "mpi_hybrid/rma/bell.h"

namespace weft::mpi::rma {

// Among what Progress sleeps on: the bell, for all waits of this process.
class BellStage final : public ProgressStage {
 public:
  void Add(HostWait& wait) { waits_.push_back(&wait); }
  void Remove(const HostWait& wait) { waits_.erase(std::find(waits_.begin(), waits_.end(), &wait)); }

  // True when a wait has ended: of this thread, or of one that sleeps behind it and has to be told. Once for each, since
  // who polls in vain lets the other have the lock.
  bool Poll() override {
    bool news = false;
    for (HostWait* wait : waits_) {
      if (wait->told_ != wait->IsOver()) news |= wait->told_ = !wait->told_;
    }
    if (news) Progress::Wake();
    return news;
  }

  bool Arm() override {
    armed_ = true;
    for (const HostWait* wait : waits_) wait->mine_.head->asleep.store(1, std::memory_order_relaxed);
    // Pairs with HostRanks::Wake. A writer stores its word and then checks `asleep`; this thread stores `asleep` and then
    // checks the words. At least one of the two sees the other's store. Without the fence, the acquire loads of the waits
    // could pass these stores.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    return !AnyNews();
  }

  void OnAwake() override {
    if (!std::exchange(armed_, false)) return;
    for (const HostWait* wait : waits_) wait->mine_.head->asleep.store(0);
    Silence();  // also of what rang for waits that are over: it would end the next sleep at once
  }

  int fd() const override { return OwnBellDescriptor(); }

 private:
  // A wait that is over and was told is another thread's, which goes on when it gets the lock: not before this one sleeps.
  bool AnyNews() const {
    return std::any_of(waits_.begin(), waits_.end(), [](const HostWait* wait) { return wait->IsOver() && !wait->told_; });
  }

  std::vector<HostWait*> waits_;
  bool armed_ = false;
};

namespace {

constexpr std::chrono::microseconds kSpin{20};
constexpr int kClockEvery = 16;  // looks
constexpr int kYields = 30;

std::unique_ptr<BellStage> g_stage;

}  // namespace

HostWait::Spinner::Spinner() : yields_(SpinTime().count() == 0) {}

bool HostWait::Spinner::Goes() {
  if (turns_++ == 0) return true;
  if (yields_) {
    if (turns_ > kYields) return false;
    LibraryLock::Release();
    sched_yield();
    LibraryLock::Acquire();
    return true;
  }
  if (turns_ > kEager) Pause();
  if (turns_ % kClockEvery != 0) return true;
  if (SharesProcessor()) {
    yields_ = true;
    turns_ = 1;
    return true;
  }
  const auto now = std::chrono::steady_clock::now();
  if (turns_ == kClockEvery) end_ = now + kSpin;
  return now < end_;
}

void HostWait::Enter() {
  if (g_stage == nullptr) {
    g_stage = std::make_unique<BellStage>();
    Progress::AddStage(g_stage.get());
  }
  g_stage->Add(*this);
}

HostWait::~HostWait() { g_stage->Remove(*this); }

void HostWait::Close() {
  if (g_stage == nullptr) return;
  Progress::RemoveStage(g_stage.get());
  g_stage.reset();
}

}  // namespace weft::mpi::rma
