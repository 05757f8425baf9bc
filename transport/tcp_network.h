#ifndef TRANSPORT_TCP_NETWORK_H_
#define TRANSPORT_TCP_NETWORK_H_

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "base/turned_away.h"
#include "transport/epoll.h"
#include "transport/network.h"
#include "transport/progress_thread.h"
#include "transport/timer_queue.h"
#include "transport/watch_table.h"

namespace weft::transport {

// Kernel TCP and UDP sockets, and one thread (the progress thread) that sleeps in epoll and runs handlers, timers and
// posted work. The thread starts on first use.
//
// After fork() the child has no progress thread, and the epoll instance is the parent's. In the child, every call on an
// instance of the parent is refused (ECHILD) or does nothing. ProcessNetwork() gives the child an instance of its own.
class TcpNetwork : public Network {
 public:
  TcpNetwork();
  // Ends the thread and waits for it; must not be called from a handler. Work that has not run is dropped. No watch may
  // be in use any more.
  ~TcpNetwork() override;
  TcpNetwork(const TcpNetwork&) = delete;
  TcpNetwork& operator=(const TcpNetwork&) = delete;

  Result<std::unique_ptr<ByteStream>, int> StartConnect(const SocketAddress& local,
                                                        const SocketAddress& remote) override;
  Result<std::unique_ptr<ByteStream>, int> OpenLoop(const SocketAddress& local) override;
  Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                bool reuse_address) override;
  Result<std::unique_ptr<DatagramSocket>, int> OpenDatagram(const SocketAddress& local,
                                                            const DatagramOptions& options) override;

  // At most one watch per stream, listener or socket. Returns 0 if the kernel is out of memory or of epoll watches
  // (/proc/sys/fs/epoll/max_user_watches).
  WatchId Watch(ByteStream& stream, Interest interest, std::shared_ptr<ReadyHandler> handler) override;
  WatchId Watch(Listener& listener, std::shared_ptr<ReadyHandler> handler) override;
  WatchId Watch(DatagramSocket& socket, Interest interest, std::shared_ptr<ReadyHandler> handler) override;
  WatchId WatchDescriptor(int fd, std::shared_ptr<ReadyHandler> handler) override;
  void SetInterest(WatchId id, Interest interest) override;
  void Unwatch(WatchId id) override;

  Time Now() override { return std::chrono::steady_clock::now(); }
  TimerId RunAt(Time when, std::function<void()> work) override;
  bool Cancel(TimerId id) override;
  void Post(std::function<void()> work) override;
  bool DriveInline() override;
  void EndDrive() override;
  void Lend(WatchId id) override;
  std::unique_ptr<WatchGroup> MakeGroup() override;

  // False in a child of the process that made this instance.
  bool InThisProcess() const;

 protected:
  // Ends the progress thread. For the destructors of classes above, whose functions it may call.
  void Stop();

 private:
  using Work = std::function<void()>;

  // Makes epoll and the thread unless they exist. Returns 0 or an errno.
  int EnsureStarted();
  int Start();
  void Run();
  // Moves due work into `work`. Returns false if the thread must end. Sets how long to sleep if there is no work.
  bool TakeWork(std::vector<Work>& work, Time& sleep_until);
  void Dispatch(const epoll_event& event);
  // Leaves the sockets to threads that call DriveInline, until there was no such call for a while.
  void Park(Time until);
  // For a DriveInline() that cannot drive now. Returns false.
  bool TurnAway();
  void LetRest(WatchId listener);
  bool IsProgressThread() const;

  const unsigned born_;  // number of forks before this instance was made
  Epoll epoll_;
  WatchTable watches_{epoll_.set()};
  ProgressThread thread_;
  std::atomic<bool> started_{false};  // stored with release once epoll and the thread exist
  // True while the thread sleeps or is about to. Set under mutex_ after the queues were examined. A thread that adds to
  // the queues under mutex_ and reads false knows that the progress thread will look again.
  std::atomic<bool> asleep_{false};

  // Inline driving. drive_mutex_ is held by the one thread that examines the sockets in place of the progress thread.
  // It does so only while parked_, so it never consumes the wake-up of a sleeping progress thread.
  std::atomic<uint64_t> drives_{0};    // a hint for Park(), which checks again after a tick
  // Both are set before a wake-up through the kernel (epoll_.Wake), and read after it.
  std::atomic<bool> offered_{false};
  std::atomic<bool> recalled_{false};  // by EndDrive()
  TurnedAway turned_away_;             // attempts to drive
  std::mutex drive_mutex_;
  std::atomic<bool> parked_{false};  // written under drive_mutex_, under which DriveInline() reads it again
  // Of the progress thread: when it looks next, how long after that again, and what it saw last.
  Time park_look_;
  Duration park_tick_{};
  uint64_t park_drives_ = 0;

  std::mutex mutex_;  // guards the members below; never held while work runs
  TimerQueue timers_;
  std::vector<Work> posted_;
  Time sleeps_until_ = Time::max();  // while asleep_
  bool stopping_ = false;
};

// The network of this process. Made on first use and never destroyed, because its thread may outlive main's statics. A
// child of fork() gets a new one.
TcpNetwork& ProcessNetwork();

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_NETWORK_H_
