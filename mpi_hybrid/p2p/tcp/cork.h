#ifndef MPI_HYBRID_P2P_TCP_CORK_H_
#define MPI_HYBRID_P2P_TCP_CORK_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "mpi_hybrid/p2p/tcp/socket.h"

namespace weft::mpi {

class Cork;

// Lets go of what corks hold, where nobody else does in time: a thread, begun when the first one holds something. It looks every now and then, and lets go of
// what it saw held a kTick before. While nothing needs that it looks less and less often, since it takes the processor from those that do not need it; when
// none held anything for a while it sleeps without a time. It takes no lock but this object's, and no signals.
class Corks {
 public:
  static constexpr std::chrono::microseconds kTick{50}, kLongest{800};

  Corks() = default;
  ~Corks();
  Corks(const Corks&) = delete;
  Corks& operator=(const Corks&) = delete;

 private:
  friend class Cork;

  // With the mutex.
  bool Begin();  // false: there is no thread to be had
  void Add(Cork& cork);
  enum class Seen : uint8_t { kNothing, kHeld, kLetGo };
  Seen Tick();

  void Run();

  std::mutex mutex_;  // guards all of this, and what corks hold; a write to a socket that is not full goes on under it
  std::condition_variable wanted_;
  std::vector<Cork*> listed_;  // those that held something since the last tick
  bool asleep_ = false;
  bool ends_ = false;
  std::thread thread_;
};

// Frames for one socket that wait for those which follow, so that one system call takes them all. They leave in front of the next that is
// written, when Write is called, or by themselves, Corks::kTick after the thread saw them.
class Cork {
 public:
  static constexpr size_t kRoom = 64 * 1024;     // bytes
  static constexpr size_t kMostFrame = 9 * 1024;  // of those that may wait: to copy more costs as much as the system call

  // Both outlive it.
  Cork(Corks& corks, const Socket& socket) : corks_(corks), socket_(socket) {}
  ~Cork();
  Cork(const Cork&) = delete;
  Cork& operator=(const Cork&) = delete;

  bool empty() const { return held_.load(std::memory_order_acquire) == 0; }
  // Takes a copy of the `total` bytes of `pieces`. False: they do not all stand there, or there is no room.
  bool Hold(std::span<const iovec> pieces, size_t total);
  // Writes what is held and `pieces` behind it (at most kMostPieces) with one system call. How many bytes of `pieces` went, or a negative errno. Where
  // they did not go all, and something is still held, that is to be written first.
  ssize_t Write(std::span<const iovec> pieces);
  static constexpr size_t kMostPieces = 64;

 private:
  friend class Corks;

  // With the mutex.
  void LetGo();
  size_t held() const { return held_.load(std::memory_order_relaxed); }
  void DropFront(size_t bytes);

  Corks& corks_;
  const Socket& socket_;
  std::unique_ptr<uint8_t[]> bytes_;  // kRoom; made when it is needed
  std::atomic<size_t> held_{0};       // changed with the mutex
  bool listed_ = false;
  int ticks_ = 0;     // to go until it is let go of
  int patience_ = 1;  // ticks between attempts while the socket is full
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_CORK_H_
