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

// Kernel TCP and UDP sockets, and one thread (the progress thread) that sleeps in epoll and calls handlers, timers and posted
// work. The thread starts at the first use that needs it.
//
// After fork() the child has no progress thread, and the epoll instance is the parent's: in the child every call on an
// instance of the parent is refused (ECHILD) or does nothing. ProcessNetwork() gives the child an instance of its own.
class TcpNetwork : public Network {
 public:
  TcpNetwork();
  // Ends the thread and waits for it: not from a handler. Work that did not run is dropped. No watch may be left that
  // others still use.
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

  // At most one watch per stream, listener or socket at a time. 0 when the kernel is out of memory or of epoll watches
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

 private:
  using Work = std::function<void()>;

  // Makes epoll and the thread if they are not there; 0 or an errno.
  int EnsureStarted();
  int Start();
  void Run();
  // Moves what is due into `work`; false when the thread is to end. Says how long to sleep when there is nothing to do.
  bool TakeWork(std::vector<Work>& work, Time& sleep_until);
  void Dispatch(const epoll_event& event);
  // Leaves the sockets to whoever calls DriveInline, until nobody did for a while.
  void Park(Time until);
  // For DriveInline(): it cannot now. False.
  bool TurnAway();
  void LetRest(WatchId listener);
  bool IsProgressThread() const;

  const unsigned born_;  // number of forks before this instance was made
  Epoll epoll_;
  WatchTable watches_{epoll_.set()};
  ProgressThread thread_;
  std::atomic<bool> started_{false};  // with release when epoll and the thread are there
  // True while the thread sleeps or is about to. Set under mutex_ after looking at the queues, so that whoever adds to
  // them under mutex_ and reads false knows that the thread will look again.
  std::atomic<bool> asleep_{false};

  // Inline driving. drive_mutex_ is held by the one thread that looks at the sockets in place of the progress thread; it does
  // so only while parked_, so that it never takes a wake-up away from a sleeping progress thread.
  std::atomic<uint64_t> drives_{0};    // a hint for Park(), which looks again in a tick
  // Both are set before a wake-up that goes through the kernel (epoll_.Wake), and looked at behind it.
  std::atomic<bool> offered_{false};
  std::atomic<bool> recalled_{false};  // by EndDrive()
  TurnedAway turned_away_;             // tries to drive
  std::mutex drive_mutex_;
  std::atomic<bool> parked_{false};  // written under drive_mutex_, under which DriveInline() looks once more
  Time park_look_;                   // of the progress thread: when it looks next, how long after that again, and what it saw last
  Duration park_tick_{};
  uint64_t park_drives_ = 0;

  std::mutex mutex_;  // guards what follows; never held while work runs
  TimerQueue timers_;
  std::vector<Work> posted_;
  Time sleeps_until_ = Time::max();  // while asleep_
  bool stopping_ = false;
};

// The network of this process, made on first use and never destroyed: its thread may outlive main's statics. A child
// after fork() gets a fresh one.
TcpNetwork& ProcessNetwork();

}  // namespace weft::transport

#endif  // TRANSPORT_TCP_NETWORK_H_
