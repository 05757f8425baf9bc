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

// Writes the frames that corks hold, if nothing else does so in time. It is a thread, started when the first cork holds
// frames. The thread wakes up periodically and writes frames that it saw a kTick before. While that is not necessary,
// it wakes up less and less often, because it takes processor time from other threads. When no cork has held frames for
// a while, it sleeps without a time limit. It takes no lock but this object's mutex, and no signals.
class Corks {
 public:
  static constexpr std::chrono::microseconds kTick{50}, kLongest{800};

  Corks() = default;
  ~Corks();
  Corks(const Corks&) = delete;
  Corks& operator=(const Corks&) = delete;

 private:
  friend class Cork;

  // Call with the mutex held.
  bool Begin();  // false: no thread could be created
  void Add(Cork& cork);
  enum class Seen : uint8_t { kNothing, kHeld, kLetGo };
  Seen Tick();

  void Run();

  // guards all of this, and the frames held by corks; a write to a socket that is not full is made under it
  std::mutex mutex_;
  std::condition_variable wanted_;
  std::vector<Cork*> listed_;  // those that have held frames since the last tick
  bool asleep_ = false;
  bool ends_ = false;
  std::thread thread_;
};

// Frames for one socket that wait for later ones, so that one system call writes them all. They are written before the
// next frame, when Write is called, or by the thread, Corks::kTick after it saw them.
class Cork {
 public:
  static constexpr size_t kRoom = 64 * 1024;     // bytes
  // longest frame that may wait: copying more costs as much as the system call
  static constexpr size_t kMostFrame = 9 * 1024;

  // Both must outlive it.
  Cork(Corks& corks, const Socket& socket) : corks_(corks), socket_(socket) {}
  ~Cork();
  Cork(const Cork&) = delete;
  Cork& operator=(const Cork&) = delete;

  bool empty() const { return held_.load(std::memory_order_acquire) == 0; }
  // Copies the `total` bytes of `pieces`. False: `pieces` do not contain all of them, or there is no space.
  bool Hold(std::span<const iovec> pieces, size_t total);
  // Writes the held bytes followed by `pieces` (at most kMostPieces) with one system call. Returns the number of bytes
  // of `pieces` written, or a negative errno. If not all were written, bytes may still be held; they must be written
  // first.
  ssize_t Write(std::span<const iovec> pieces);
  static constexpr size_t kMostPieces = 64;

 private:
  friend class Corks;

  // Call with the mutex held.
  void LetGo();
  size_t held() const { return held_.load(std::memory_order_relaxed); }
  void DropFront(size_t bytes);

  Corks& corks_;
  const Socket& socket_;
  std::unique_ptr<uint8_t[]> bytes_;  // kRoom bytes; allocated when needed
  std::atomic<size_t> held_{0};       // changed under the mutex
  bool listed_ = false;
  int ticks_ = 0;     // until the frames are written
  int patience_ = 1;  // ticks between attempts while the socket is full
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_CORK_H_
