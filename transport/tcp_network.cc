#include "transport/tcp_network.h"

#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "transport/tcp_listener.h"
#include "transport/tcp_stream.h"
#include "transport/tcp_watch_group.h"
#include "transport/udp_socket.h"

namespace weft::transport {
namespace {

// How often the parked progress thread looks whether somebody still drives: seldom when it was so for long, since every look takes a
// processor from a program that spins.
constexpr Duration kFirstParkTick = std::chrono::microseconds(250);
constexpr Duration kLongestParkTick = std::chrono::milliseconds(1);
constexpr Duration kStarvedListenerRest = std::chrono::milliseconds(100);

std::atomic<unsigned> g_forks{0};

// How many forks lie between this process and the one that loaded the library.
unsigned Forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  WEFT_CHECK(registered == 0);
  return g_forks.load(std::memory_order_relaxed);
}

// The instance whose progress thread this is.
thread_local const TcpNetwork* t_network = nullptr;

}  // namespace

TcpNetwork::TcpNetwork() : born_(Forks()) {}

TcpNetwork::~TcpNetwork() {
  WEFT_CHECK(!IsProgressThread());
  if (!InThisProcess()) return;
  Stop();
  // What the dropped work owns may call back when it is destroyed: while this object is whole.
  auto timers = std::exchange(timers_, {});
  auto posted = std::exchange(posted_, {});
}

void TcpNetwork::Stop() {
  if (!started_.load(std::memory_order_acquire)) return;
  {
    std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  epoll_.Wake();
  thread_.Join();
}

bool TcpNetwork::InThisProcess() const { return born_ == g_forks.load(std::memory_order_relaxed); }

bool TcpNetwork::IsProgressThread() const { return t_network == this; }

int TcpNetwork::EnsureStarted() {
  if (!InThisProcess()) return ECHILD;
  if (started_.load(std::memory_order_acquire)) return 0;
  int error = Start();
  if (error != 0) {
    LogWarning(
        Format("cannot start the progress thread: %s (ulimit -u limits threads)", DescribeShortage(error).c_str()));
  }
  return error;
}

int TcpNetwork::Start() {
  std::lock_guard lock(mutex_);
  if (started_.load(std::memory_order_relaxed)) return 0;
  RaiseFileLimit();
  if (int error = epoll_.Open(); error != 0) return error;
  if (int error = thread_.Start([this] { Run(); }); error != 0) return error;
  started_.store(true, std::memory_order_release);
  return 0;
}

Result<std::unique_ptr<ByteStream>, int> TcpNetwork::StartConnect(const SocketAddress& local,
                                                                  const SocketAddress& remote) {
  if (int error = EnsureStarted(); error != 0) return error;
  return TcpStream::StartConnect(local, remote);
}

Result<std::unique_ptr<ByteStream>, int> TcpNetwork::OpenLoop(const SocketAddress& local) {
  if (int error = EnsureStarted(); error != 0) return error;
  return TcpStream::OpenLoop(local);
}

Result<std::unique_ptr<Listener>, int> TcpNetwork::Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                          bool reuse_address) {
  if (int error = EnsureStarted(); error != 0) return error;
  return TcpListener::Open(local, backlog, only_v6, reuse_address);
}

Result<std::unique_ptr<DatagramSocket>, int> TcpNetwork::OpenDatagram(const SocketAddress& local,
                                                                      const DatagramOptions& options) {
  if (int error = EnsureStarted(); error != 0) return error;
  return UdpSocket::Open(local, options);
}

WatchId TcpNetwork::Watch(DatagramSocket& socket, Interest interest, std::shared_ptr<ReadyHandler> handler) {
  if (EnsureStarted() != 0) return 0;
  auto id = watches_.Add(socket.fd(), interest, std::move(handler), nullptr);
  return id ? *id : 0;
}

WatchId TcpNetwork::Watch(ByteStream& stream, Interest interest, std::shared_ptr<ReadyHandler> handler) {
  if (EnsureStarted() != 0) return 0;
  auto id = watches_.Add(stream.fd(), interest, std::move(handler), nullptr);
  return id ? *id : 0;
}

WatchId TcpNetwork::Watch(Listener& listener, std::shared_ptr<ReadyHandler> handler) {
  if (EnsureStarted() != 0) return 0;
  auto* tcp = dynamic_cast<TcpListener*>(&listener);
  auto id = watches_.Add(listener.fd(), {.read = true}, std::move(handler), tcp ? tcp->starved() : nullptr);
  return id ? *id : 0;
}

WatchId TcpNetwork::WatchDescriptor(int fd, std::shared_ptr<ReadyHandler> handler) {
  if (EnsureStarted() != 0) return 0;
  auto id = watches_.Add(fd, {.read = true}, std::move(handler), nullptr);
  return id ? *id : 0;
}

void TcpNetwork::SetInterest(WatchId id, Interest interest) {
  if (InThisProcess()) watches_.SetInterest(id, interest);
}

void TcpNetwork::Unwatch(WatchId id) {
  if (InThisProcess()) watches_.Remove(id);
}

TimerId TcpNetwork::RunAt(Time when, std::function<void()> work) {
  EnsureStarted();  // on failure the work waits for a later start
  if (!InThisProcess()) return 0;
  TimerId id;
  bool wake;
  {
    std::lock_guard lock(mutex_);
    id = timers_.Add(when, std::move(work));
    wake = when < sleeps_until_ && asleep_.exchange(false, std::memory_order_relaxed);
  }
  if (wake) epoll_.Wake();
  return id;
}

bool TcpNetwork::Cancel(TimerId id) {
  if (!InThisProcess()) return false;
  Work work;  // destroyed after the lock is released
  std::lock_guard lock(mutex_);
  work = timers_.Cancel(id);
  return work != nullptr;
}

void TcpNetwork::Post(std::function<void()> work) {
  EnsureStarted();
  if (!InThisProcess()) return;
  bool wake;
  {
    std::lock_guard lock(mutex_);
    posted_.push_back(std::move(work));
    wake = asleep_.exchange(false, std::memory_order_relaxed);
  }
  if (wake) epoll_.Wake();
}

void TcpNetwork::Run() {
  t_network = this;
  std::vector<Work> work;
  epoll_event storage[64];
  Time sleep_until;
  while (TakeWork(work, sleep_until)) {
    if (const auto pause = g_progress_pause.load(std::memory_order_relaxed); pause != nullptr) [[unlikely]] pause();
    for (Work& one : work) one();
    work.clear();
    if (offered_.load(std::memory_order_acquire)) {
      Park(sleep_until);
      continue;
    }
    auto events = epoll_.set().Wait(storage, sleep_until);
    asleep_.store(false, std::memory_order_relaxed);
    for (const epoll_event& event : events) Dispatch(event);
  }
}

void TcpNetwork::Park(Time until) {
  if (!parked_.load(std::memory_order_relaxed)) {
    std::lock_guard lock(drive_mutex_);
    parked_.store(true, std::memory_order_release);
    watches_.OpenLending();
    park_drives_ = drives_.load(std::memory_order_relaxed);
    park_tick_ = kFirstParkTick;
    park_look_ = Now() + park_tick_;
  }
  epoll_.WaitForWake(std::min(park_look_, until));
  asleep_.store(false, std::memory_order_relaxed);
  const bool recalled = recalled_.exchange(false, std::memory_order_acq_rel);
  if (!recalled) {
    const Time now = Now();
    if (now < park_look_) return;  // work, and timers, do not put off the look
    park_tick_ = std::min(2 * park_tick_, kLongestParkTick);
    park_look_ = now + park_tick_;
    watches_.ReclaimIdle();
    const uint64_t drives = drives_.load(std::memory_order_relaxed);
    if (std::exchange(park_drives_, drives) != drives) return;
  }
  // A thread that drives may have lost its processor in the middle of it. Timers and posted work do not wait for it, which may be long.
  std::unique_lock lock(drive_mutex_, std::try_to_lock);
  if (!lock.owns_lock()) {
    if (recalled) recalled_.store(true, std::memory_order_relaxed);
    park_look_ = Now() + kFirstParkTick;
    return;
  }
  if (!watches_.CloseLending()) return;  // no memory for a watch: try again in a tick
  parked_.store(false, std::memory_order_relaxed);
  offered_.store(false, std::memory_order_release);
}

bool TcpNetwork::DriveInline() {
  if (!started_.load(std::memory_order_acquire) || !InThisProcess()) return false;
  drives_.store(drives_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (!offered_.load(std::memory_order_acquire)) {
    if (!offered_.exchange(true, std::memory_order_acq_rel)) epoll_.Wake();
    return false;
  }
  if (!parked_.load(std::memory_order_acquire)) return TurnAway();  // the lock would stand in the way of the thread that parks
  std::unique_lock lock(drive_mutex_, std::try_to_lock);
  if (!lock.owns_lock() || !parked_.load(std::memory_order_acquire)) return TurnAway();
  epoll_event storage[64];
  auto events = epoll_.set().Poll(storage);
  bool any = false;
  for (const epoll_event& event : events) {
    any |= event.data.u64 != Epoll::kWakeKey;
    Dispatch(event);
  }
  return any;
}

// Another thread is at it, or the progress thread has not parked yet. Every connection that is being made comes through here.
bool TcpNetwork::TurnAway() {
  turned_away_.Note();
  return false;
}

void TcpNetwork::Lend(WatchId id) {
  if (parked_.load(std::memory_order_relaxed) && InThisProcess()) watches_.Lend(id);
}

std::unique_ptr<WatchGroup> TcpNetwork::MakeGroup() {
  if (EnsureStarted() != 0) return nullptr;
  return TcpWatchGroup::Open(*this, watches_);
}

void TcpNetwork::EndDrive() {
  if (!offered_.load(std::memory_order_acquire) || !InThisProcess()) return;
  if (!recalled_.exchange(true, std::memory_order_acq_rel)) epoll_.Wake();
}

bool TcpNetwork::TakeWork(std::vector<Work>& work, Time& sleep_until) {
  std::lock_guard lock(mutex_);
  if (stopping_) return false;
  work.swap(posted_);
  if (timers_.NextDue() != TimerQueue::kNever) {
    Time now = Now();
    while (Work due = timers_.TakeDue(now)) work.push_back(std::move(due));
  }
  // With work in hand the sockets are only looked at, so that neither starves the other.
  sleep_until = work.empty() ? timers_.NextDue() : Time::min();
  sleeps_until_ = sleep_until;
  asleep_.store(work.empty(), std::memory_order_relaxed);
  return true;
}

void TcpNetwork::Dispatch(const epoll_event& event) {
  if (event.data.u64 == Epoll::kWakeKey) return;
  const WatchTable::Hit hit = watches_.Find(event);
  if (hit.handler == nullptr) return;
  hit.handler->OnReady(hit.ready);
  if (hit.starved != nullptr && hit.starved->exchange(false, std::memory_order_relaxed)) LetRest(event.data.u64);
}

// The backlog stays readable while there is no descriptor for what waits in it: without a rest the thread would spin.
void TcpNetwork::LetRest(WatchId listener) {
  SetInterest(listener, {});
  RunAt(Now() + kStarvedListenerRest, [this, listener] { SetInterest(listener, {.read = true}); });
}

TcpNetwork& ProcessNetwork() {
  // Reached from here for ever, those of parent processes through the chain: no leak, and no lock that a fork could
  // leave locked.
  struct Entry {
    TcpNetwork network;
    Entry* of_parent;
  };
  static std::atomic<Entry*> current{nullptr};

  Entry* entry = current.load(std::memory_order_acquire);
  while (entry == nullptr || !entry->network.InThisProcess()) {
    auto* fresh = new Entry{.of_parent = entry};
    if (current.compare_exchange_strong(entry, fresh, std::memory_order_acq_rel)) return fresh->network;
    delete fresh;
  }
  return entry->network;
}

}  // namespace weft::transport
