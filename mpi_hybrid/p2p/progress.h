#ifndef MPI_HYBRID_P2P_PROGRESS_H_
#define MPI_HYBRID_P2P_PROGRESS_H_

#include <atomic>
#include <chrono>
#include <functional>

#include "mpi_hybrid/p2p/request/request.h"
#include "mpi_hybrid/p2p/watch.h"

namespace weft::mpi {

class Device;

// A source of progress beside the sockets of p2p/, such as the window device's completion queue. It is registered when
// the first window is made, and costs nothing before.
class ProgressStage {
 public:
  virtual ~ProgressStage() = default;
  // Does all that can be done now. Returns whether it did anything. It is also called while another thread sleeps for
  // which the stage has armed; that thread must be woken as before.
  virtual bool Poll() = 0;
  // Called before a sleep. True: fd() becomes readable when there is something to do. False: there is something to do
  // already.
  virtual bool Arm() = 0;
  // The sleep is over, or did not take place because of another stage.
  virtual void OnAwake() {}
  // Readable when there is something to do, after Arm(). -1: the stage needs no wake-up.
  virtual int fd() const = 0;
  // Whether this process may have to carry out operations of others while it waits.
  virtual bool Serves() const { return true; }
  // Whether a thread waits for an event that only this stage brings. Idle sockets are then polled less often.
  virtual bool Awaited() const { return false; }
};

// The only place that polls. Call with the library's lock held; Wait releases it while it sleeps.
class Progress {
 public:
  static void AddStage(ProgressStage* stage);
  static void RemoveStage(ProgressStage* stage);

  // One round over sockets and stages, without sleeping. Returns whether anything moved.
  static bool Poll();

  // The same for MPI_Test and similar functions, which programs call repeatedly. If nothing moved, it lets other
  // threads have the lock and, if ranks share the processor, yields the processor.
  static bool PollForTest();

  // kSleeping: polling has found nothing so far; until an event comes, the wait polls once before each sleep.
  enum class Start : uint8_t { kPolling, kSleeping };

  // Waits until `done()` is true. It spins briefly (not at all if ranks share cores; seldom if spinning was in vain
  // before), then sleeps until a socket, a stage or another thread's Wake() reports an event. `done` is called with the
  // lock held and must only read.
  template <typename Done>
  static void WaitUntil(Done done, Start start = Start::kPolling) {
    if (done()) return;
    Waiter waiter(start);
    while (!done()) {
      // Check what polling did before a sleep.
      if (!waiter.Poll() && !done()) waiter.Rest();
    }
  }
  static void Wait(const Request& request) {
    WaitUntil([&] { return request.complete; });
  }

  // The same, but at most until `deadline`.
  template <typename Done>
  static void WaitUntil(Done done, std::chrono::steady_clock::time_point deadline, Start start = Start::kPolling) {
    const Alarm alarm(deadline);
    WaitUntil([&] { return done() || std::chrono::steady_clock::now() >= deadline; }, start);
  }

  // Whether a thread currently polls in a wait instead of sleeping. Any thread may call it; the result may be outdated.
  static bool IsPolling() { return polling_.load(std::memory_order_relaxed) != 0; }

  // Something has changed that a sleeping thread may wait for (Request::Complete calls this). For threads that hold the
  // lock; cheap if no thread sleeps.
  static void Wake();
  // The same for a thread that does not hold the lock (that of the RMA target).
  static void WakeFromOutside();

 private:
  static inline std::atomic<int> polling_{0};  // waits that do not sleep; changed under the lock, a hint for others
  // Ends sleeps at its time, as long as it exists.
  class Alarm {
   public:
    explicit Alarm(std::chrono::steady_clock::time_point at);
    ~Alarm();
    Alarm(const Alarm&) = delete;
    Alarm& operator=(const Alarm&) = delete;

   private:
    const std::chrono::steady_clock::time_point at_;
  };
  static void CountPolling(int change) { polling_.store(polling_.load(std::memory_order_relaxed) + change, std::memory_order_relaxed); }
  class Waiter {
   public:
    explicit Waiter(Start start);
    ~Waiter();
    bool Poll();  // returns whether anything moved
    // releases the lock and later yields the processor; sleeps after it has polled in vain for long enough
    void Rest();

   private:
    std::chrono::steady_clock::duration Patience() const;
    void LetOthersIn();
    void Restart() {
      in_vain_ = 0;
      idle_ = false;
    }

    Device* const device_;  // is told of this wait; null: there is no device
    int in_vain_ = 0;
    bool idle_ = false;  // since idle_since_
    bool polls_;  // more than once before a sleep
    bool spins_;  // instead of sleeping at once
    bool slept_ = false;
    bool is_awaited_ = false;  // another thread has wanted the lock since awaited_since_, and it was not released since
    bool fresh_;  // it has spun only for a moment so far
    Watch watch_;
    std::chrono::steady_clock::time_point idle_since_, awaited_since_;
  };
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PROGRESS_H_
