#ifndef MPI_HYBRID_P2P_PROGRESS_H_
#define MPI_HYBRID_P2P_PROGRESS_H_

#include <atomic>
#include <chrono>
#include <functional>

#include "mpi_hybrid/p2p/request/request.h"
#include "mpi_hybrid/p2p/watch.h"

namespace weft::mpi {

class Device;

// A source of progress beside the sockets of p2p/: the window device's completion queue. Registered when the first window is made, so
// that it costs nothing before.
class ProgressStage {
 public:
  virtual ~ProgressStage() = default;
  // Does what can be done now; whether anything was. Also while another thread sleeps for which it has armed, and has to be woken as before.
  virtual bool Poll() = 0;
  // About to sleep: after this returns true, fd() becomes readable when there is something to do. False: there is something already.
  virtual bool Arm() = 0;
  // The sleep is over, or there was none because of another stage.
  virtual void OnAwake() {}
  // Readable when there is something to do, after Arm(); -1 when the stage needs no wake-up.
  virtual int fd() const = 0;
  // A thread waits for what only this stage brings: sockets on which nothing moves are then looked at less often.
  virtual bool Awaited() const { return false; }
};

// The one place that polls (design section 5). All calls with the library's lock; Wait lets go of it while it sleeps.
class Progress {
 public:
  static void AddStage(ProgressStage* stage);
  static void RemoveStage(ProgressStage* stage);

  // One round over sockets and stages, without sleeping; whether anything moved.
  static bool Poll();

  // The same for MPI_Test and its kin, which programs call over and over: when nothing moved, others get the lock, and the processor where
  // ranks share one.
  static bool PollForTest();

  // kSleeping: polling was in vain already; until something comes the wait polls once before each sleep.
  enum class Start : uint8_t { kPolling, kSleeping };

  // Until `done()` is true: spins briefly (not at all when the machine has fewer cores than ranks on it, seldom when spinning was in vain
  // before), then sleeps until a socket, a stage or another thread's Wake() has news. `done` is called with the lock, and must only look.
  template <typename Done>
  static void WaitUntil(Done done, Start start = Start::kPolling) {
    if (done()) return;
    Waiter waiter(start);
    while (!done()) {
      // What polling did is looked at before a sleep.
      if (!waiter.Poll() && !done()) waiter.Rest();
    }
  }
  static void Wait(const Request& request) {
    WaitUntil([&] { return request.complete; });
  }

  // The same, but not beyond `deadline`.
  template <typename Done>
  static void WaitUntil(Done done, std::chrono::steady_clock::time_point deadline, Start start = Start::kPolling) {
    const Alarm alarm(deadline);
    WaitUntil([&] { return done() || std::chrono::steady_clock::now() >= deadline; }, start);
  }

  // Whether a thread polls in a wait now, rather than sleep. From any thread; it may have changed when this returns.
  static bool IsPolling() { return polling_.load(std::memory_order_relaxed) != 0; }

  // Something that a sleeping thread may wait for has changed (Request::Complete calls it). From any thread that holds the lock; cheap
  // when nobody sleeps.
  static void Wake();
  // The same from a thread that does not hold the lock (the RMA target's).
  static void WakeFromOutside();

 private:
  static inline std::atomic<int> polling_{0};  // waits that do not sleep; changed with the lock, a hint to others
  // Ends sleeps at its time, for as long as it is there.
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
    bool Poll();  // whether anything moved
    void Rest();  // gives the lock, and later the processor away; sleeps when it polled in vain for long enough

   private:
    std::chrono::steady_clock::duration Patience() const;
    void LetOthersIn();
    void Restart() {
      in_vain_ = 0;
      idle_ = false;
    }

    Device* const device_;  // that is told of this wait; null: there was none
    int in_vain_ = 0;
    bool idle_ = false;  // since idle_since_
    bool polls_;  // for longer than once before a sleep
    bool spins_;  // rather than sleep at once
    bool slept_ = false;
    bool is_awaited_ = false;  // another thread wants the lock, since awaited_since_; it has not been let go since
    bool fresh_;  // it spins, and has for a moment only
    Watch watch_;
    std::chrono::steady_clock::time_point idle_since_, awaited_since_;
  };
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PROGRESS_H_
