#include "mpi_hybrid/p2p/progress.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/p2p/device/device.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "mpi_hybrid/p2p/request/news.h"

namespace weft::mpi {
namespace {

using Clock = std::chrono::steady_clock;

// From then on a spinning wait offers the processor to others; the second where another rank has it.
constexpr Clock::duration kGreedy = std::chrono::microseconds(50), kGreedyInMemory = std::chrono::microseconds(3);
constexpr Clock::duration kAfterSleep = std::chrono::microseconds(30);
// Where what comes needs no system call: more than it takes to be woken, or two that sleep now and then would wait for each other asleep for ever.
constexpr Clock::duration kYielding = std::chrono::microseconds(1000);
constexpr Clock::duration kTrial = std::chrono::microseconds(100);  // where spinning was in vain before
// A sleep below that took not much longer than to be woken: where the last one was such, the next wait polls for as long before it sleeps, and offers the
// processor to others meanwhile. Else two that sleep would wait for each other asleep, whose messages take no time but that. Only where a stage serves others, as
// that of windows between hosts: a target that waits carries out the operations of others, of which each would wait for its sleep (Get_accumulate and flush of
// three ranks on two processors: 70 us instead of 25). Ranks that only exchange messages are better off asleep: collectives of four on two processors take up
// to a quarter less time.
constexpr Clock::duration kShortSleep = std::chrono::microseconds(200);
// ... unless a processor that was offered came back only after as long: a program that computes has it, and a rank that sleeps is let in before it when it
// is woken. So many sleeps are not taken for short then.
constexpr int kSleepsBesideOthers = 1000;
constexpr Clock::duration kBusy = std::chrono::microseconds(50);  // so long a wait that always finds something keeps the lock, since another thread was seen to want it
constexpr int kLooksPerClock = 8;  // in the first microseconds: the clock costs as much as a look
constexpr uint32_t kSocketsEvery = 4;      // so seldom are sockets polled while a stage is awaited
constexpr uint32_t kLivelySockets = 64;   // ... but in so many polls after something moved on them
constexpr int kMostDoublings = 8;   // of the number of waits that do not spin after those that spun in vain

struct StageEntry {
  ProgressStage* stage;
  int watched = -1;  // descriptor that the loop watches
};

// The library's lock for a condition variable.
struct Lockable {
  void lock() { LibraryLock::Acquire(); }
  void unlock() { LibraryLock::Release(); }
};

// When sleeps are to end whatever comes.
class Alarms final : public EventLoop::Timed {
 public:
  void Add(Clock::time_point at) {
    if (!std::exchange(watched_, true)) ProcessDevice()->loop().Add(*this);
    times_.insert(at);
  }
  void Remove(Clock::time_point at) { times_.erase(times_.find(at)); }

  std::optional<Clock::time_point> deadline() const override {
    if (times_.empty()) return std::nullopt;
    return *times_.begin();
  }
  void OnTime(Clock::time_point) override { Progress::Wake(); }

 private:
  std::multiset<Clock::time_point> times_;
  bool watched_ = false;
};

struct State {
  Alarms alarms;
  std::vector<StageEntry> stages;
  bool polling_stages = false;
  uint32_t polls = 0, lively_until = 0;  // the latter of the sockets
  bool in_epoll = false;   // a thread sleeps there
  uint64_t sleep = 0;      // ... in that of EventLoop::sleeps()
  bool wake_sent = false;  // ... and will be woken
  int others_asleep = 0;   // threads that sleep in `others`
  std::condition_variable_any others;
  std::atomic<bool> outside_news{false};
  int spins_in_vain = 0;   // waits in a row whose spinning ended in sleep
  int waits_to_sleep = 0;  // that do not spin
  bool short_sleep = false;  // the last one in epoll was
  int beside_others = 0;     // so many more are not taken for short
};

State& TheState() {
  static State* state = [] {
    News::Listen(&Progress::Wake);
    return new State;  // outlives the program's exit handlers
  }();
  return *state;
}

bool PollStages(State& state) {
  if (state.stages.empty() || state.polling_stages) return false;
  state.polling_stages = true;
  bool moved = false;
  for (size_t i = 0; i < state.stages.size(); ++i) moved |= state.stages[i].stage->Poll();
  state.polling_stages = false;
  return moved;
}

bool SocketsAreDue(State& state) {
  ++state.polls;
  if (state.polls % kSocketsEvery == 0 || static_cast<int32_t>(state.lively_until - state.polls) > 0) return true;
  return std::none_of(state.stages.begin(), state.stages.end(), [](const StageEntry& entry) { return entry.stage->Awaited(); });
}

bool Serves(const State& state) {
  return std::any_of(state.stages.begin(), state.stages.end(), [](const StageEntry& entry) { return entry.stage->Serves(); });
}

void EndSleepInEpoll(State& state) {
  if (!state.in_epoll || state.wake_sent || state.sleep != ProcessDevice()->loop().sleeps()) return;
  state.wake_sent = true;
  ProcessDevice()->loop().Wake();
}

bool ArmStages(State& state, Device& device) {
  for (StageEntry& stage : state.stages) {
    if (!stage.stage->Arm()) return false;
    const int fd = stage.stage->fd();
    if (fd == stage.watched) continue;
    if (stage.watched >= 0) device.loop().Unwatch(stage.watched);
    if (fd >= 0) device.loop().Watch(fd);
    stage.watched = fd;
  }
  return true;
}

void DisarmStages(State& state) {
  for (const StageEntry& stage : state.stages) stage.stage->OnAwake();
}

void SleepInEpoll(State& state, Device& device, Watch& watch) {
  if (!ArmStages(state, device)) return DisarmStages(state);
  state.in_epoll = true;
  News::AddSleeper();
  state.sleep = device.loop().sleeps();
  state.wake_sent = false;
  // News from outside that came before now were seen by the last look; those after it end the sleep.
  const bool news = state.outside_news.exchange(false);
  const bool ready = news || device.Sleep(watch.BeforeSleep(Clock::now(), ProcessEngine()->unreached()));
  state.in_epoll = false;
  News::RemoveSleeper();
  DisarmStages(state);
  if (watch.AfterSleep(Clock::now(), ready)) device.ConnectToAwaited();
  if (state.outside_news.exchange(false) || news) {
    if (state.others_asleep != 0) state.others.notify_all();
  }
}

}  // namespace

Progress::Alarm::Alarm(Clock::time_point at) : at_(at) {
  if (ProcessDevice() == nullptr) return;
  TheState().alarms.Add(at);
  EndSleepInEpoll(TheState());  // it may be earlier than the end of that
}

Progress::Alarm::~Alarm() {
  if (ProcessDevice() != nullptr) TheState().alarms.Remove(at_);
}

void Progress::AddStage(ProgressStage* stage) {
  TheState().stages.push_back({.stage = stage});
  Wake();
}

void Progress::RemoveStage(ProgressStage* stage) {
  std::vector<StageEntry>& stages = TheState().stages;
  auto at = std::find_if(stages.begin(), stages.end(), [&](const StageEntry& entry) { return entry.stage == stage; });
  WEFT_CHECK(at != stages.end());
  if (at->watched >= 0 && ProcessDevice() != nullptr) ProcessDevice()->loop().Unwatch(at->watched);
  stages.erase(at);
}

bool Progress::Poll() {
  State& state = TheState();
  bool moved = false;
  if (Device* device = ProcessDevice(); device != nullptr && SocketsAreDue(state)) {
    moved = device->Poll();
    if (moved) state.lively_until = state.polls + kLivelySockets;
  }
  return PollStages(state) | moved;
}

bool Progress::PollForTest() {
  if (Poll()) {
    LibraryLock::HandOver();
    return true;
  }
  if (LibraryLock::threads_enabled() || SpinTime().count() == 0) {
    LibraryLock::Release();
    sched_yield();
    LibraryLock::Acquire();
  }
  return false;
}

void Progress::Wake() {
  State& state = TheState();
  EndSleepInEpoll(state);
  if (state.others_asleep != 0) state.others.notify_all();
}

void Progress::WakeFromOutside() {
  if (!TheState().outside_news.exchange(true) && ProcessDevice() != nullptr) ProcessDevice()->loop().Wake();
}

// A wait that spun and had to sleep anyway took the processor away from somebody, perhaps from the very rank that it waits for (when the
// machine is busy with other things, two ranks may share a processor although there is one for each).
Progress::Waiter::Waiter(Start start) : device_(ProcessDevice()), polls_(start == Start::kPolling) {
  State& state = TheState();
  spins_ = SpinTime().count() != 0 && state.waits_to_sleep == 0;
  if (state.waits_to_sleep != 0) --state.waits_to_sleep;
  fresh_ = spins_;
  if (device_ != nullptr) device_->BeginWait();
  CountPolling(1);
}

Progress::Waiter::~Waiter() {
  State& state = TheState();
  CountPolling(-1);
  if (device_ != nullptr) device_->EndWait();
  if (spins_) state.spins_in_vain = 0;
  if (state.others_asleep != 0 && !state.in_epoll) state.others.notify_one();  // to poll in this one's place
}

// How long to poll in vain now.
std::chrono::steady_clock::duration Progress::Waiter::Patience() const {
  if (!polls_) return Clock::duration(0);
  // Ranks that take turns on a processor hand it on at once, which costs each less than to sleep and to be woken.
  if (HandsProcessorOn()) return std::max<Clock::duration>(SpinTime(), kYielding);
  if (!spins_ && TheState().short_sleep) return kShortSleep;
  const bool doubted = TheState().spins_in_vain > 1;
  if (spins_) return doubted ? std::min<Clock::duration>(SpinTime(), kTrial) : Clock::duration(SpinTime());
  // A wait that slept and was woken looks for the rest of what woke it before it sleeps again.
  return slept_ && !doubted ? std::min<Clock::duration>(SpinTime(), kAfterSleep) : Clock::duration(0);
}

bool Progress::Waiter::Poll() {
  if (!Progress::Poll()) return false;
  Restart();
  if (LibraryLock::IsAwaited()) [[unlikely]] LetOthersIn();
  return true;
}

// One that finds something with each poll never rests: long data keep it busy for as long as they are.
void Progress::Waiter::LetOthersIn() {
  const Clock::time_point now = Clock::now();
  if (!std::exchange(is_awaited_, true)) awaited_since_ = now;
  if (now - awaited_since_ < kBusy) return;
  is_awaited_ = false;
  LibraryLock::HandOver();
}

void Progress::Waiter::Rest() {
  const bool threads = LibraryLock::threads_enabled();
  is_awaited_ = false;
  if (++in_vain_ % kLooksPerClock != 0 && fresh_ && !threads) return;
  Device* device = ProcessDevice();
  const Clock::time_point now = Clock::now();
  if (!std::exchange(idle_, true)) idle_since_ = now;
  const Clock::duration idle = now - idle_since_;
  fresh_ = spins_ && idle < kGreedyInMemory;
  if (device == nullptr || idle < Patience()) {
    if (threads) LibraryLock::Release();
    if (threads || !spins_ || idle > kGreedy || (idle > kGreedyInMemory && HandsProcessorOn() && SharesProcessor())) sched_yield();
    const bool is_beside_others = !spins_ && Clock::now() - now > kShortSleep;
    if (threads) LibraryLock::Acquire();
    if (is_beside_others) {
      TheState().beside_others = kSleepsBesideOthers;
      TheState().short_sleep = false;
    }
    return;
  }
  State& state = TheState();
  if (std::exchange(spins_, false)) {
    state.spins_in_vain = std::min(state.spins_in_vain + 1, kMostDoublings);
    if (state.spins_in_vain > 1) state.waits_to_sleep = 1 << state.spins_in_vain;
  }
  CountPolling(-1);
  if (state.in_epoll) {
    // Who sleeps there has told stages and peers what for, and not what this thread waits for.
    if (!state.stages.empty() || host::ThisHost() != nullptr) EndSleepInEpoll(state);
    Lockable lock;
    ++state.others_asleep;
    News::AddSleeper();
    state.others.wait(lock);
    News::RemoveSleeper();
    --state.others_asleep;
  } else {
    SleepInEpoll(state, *device, watch_);
    state.short_sleep = Serves(state) && state.beside_others == 0 && Clock::now() - now < kShortSleep;
    if (state.beside_others != 0) --state.beside_others;
    slept_ = polls_ = true;
  }
  CountPolling(1);
  Restart();
}

}  // namespace weft::mpi
