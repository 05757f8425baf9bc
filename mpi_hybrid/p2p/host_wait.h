#ifndef MPI_HYBRID_P2P_HOST_WAIT_H_
#define MPI_HYBRID_P2P_HOST_WAIT_H_

#include <chrono>

namespace weft::mpi {

// A wait for words that other processes of this host write into memory. A thread that found nothing by Spin sleeps in
// Progress, among all else that may come, while a Scope of its wait exists. Who writes such a word looks afterwards
// whether its owner sleeps, and rings the owner's bell (host::OwnBell). Collectives and windows wait so. Call with the
// library's lock held.
class HostWait {
 public:
  // Whether it has come. Only reads.
  virtual bool IsOver() const = 0;
  // Before a sleep: publishes that this process sleeps for the words, executes a full fence, and then looks at them once
  // more. Whether the wait goes on.
  virtual bool Arm() = 0;
  // After a sleep, or after Arm and none. Also called when it was not armed.
  virtual void Disarm() = 0;

  class Scope {
   public:
    explicit Scope(HostWait& wait);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    HostWait& wait_;
  };

  // How long a wait sleeps before it looks whether those it waits for live: at first, and at last. Each time is twice the
  // one before.
  static constexpr std::chrono::milliseconds kFirstSlice{20}, kLongestSlice{160};

  // Looks as long as that is likely to take less time than a sleep: for `limit`, if there is a processor for each rank;
  // then, or if ranks share processors, it yields the processor for some time. Returns whether `check()` was true.
  // Looks at nothing else, so it is only for changes that come through memory.
  template <typename Check>
  static bool Spin(const Check& check, std::chrono::microseconds limit) {
    for (Spinner spinner(limit); spinner.Goes();) {
      if (check()) return true;
    }
    return false;
  }

  // The same if the change may also come by message: looks without pauses, for less time than one poll for messages
  // takes.
  template <typename Check>
  static bool Glance(const Check& check) {
    for (int looks = 0; looks < kEager; ++looks) {
      if (check()) return true;
    }
    return false;
  }

 protected:
  HostWait() = default;
  ~HostWait() = default;

 private:
  friend class HostWaits;
  class Spinner {
   public:
    explicit Spinner(std::chrono::microseconds limit);
    bool Goes();

   private:
    bool Yields();

    const std::chrono::microseconds limit_;
    int turns_ = 0;
    bool spins_, spun_ = false;
    std::chrono::steady_clock::time_point end_;
  };
  // Looks without pauses: as long as a copy of some KiB takes, to notice the change at once.
  static constexpr int kEager = 48;

  bool told_ = false;  // whether the end of the wait was reported
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_HOST_WAIT_H_
