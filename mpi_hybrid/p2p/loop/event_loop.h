#ifndef MPI_HYBRID_P2P_LOOP_EVENT_LOOP_H_
#define MPI_HYBRID_P2P_LOOP_EVENT_LOOP_H_

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/descriptor.h"

namespace weft::mpi {

// The event loop in which a thread sleeps while it waits for MPI: readiness of descriptors (epoll, level-triggered), a
// wake-up, and timers. It knows neither messages nor peers. Guarded by the library's lock; only Sleep releases it.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;

  // A short sleep that costs less to begin and to end than one in epoll, for news that come through memory. It notices no
  // descriptor.
  class Nap {
   public:
    // Without the lock. Whether there is news; false: `most` is over.
    virtual bool Take(std::chrono::milliseconds most) = 0;
    // The nap that is being taken, or begins, ends with news. Any thread may call it.
    virtual void End() = 0;

   protected:
    ~Nap() = default;
  };
  static constexpr std::chrono::milliseconds kLongestNap{5};

  // Receives the readiness events of a descriptor.
  class Handler {
   public:
    // `events`: as in epoll(7). They may be outdated: the descriptor may not be ready any more. The function may end
    // any Registration and destroy this object.
    virtual void OnReady(uint32_t events) = 0;

   protected:
    ~Handler() = default;
  };

  // A timer.
  class Timed {
   public:
    virtual ~Timed() = default;
    virtual std::optional<Clock::time_point> deadline() const = 0;
    // The deadline has come.
    virtual void OnTime(Clock::time_point now) = 0;
  };

  // A descriptor that the loop watches for a Handler as long as this object lives. It does not own the descriptor,
  // which must outlive it. kPatient: its events may be noticed after a nap only.
  enum class Urgency : uint8_t { kUrgent, kPatient };
  class Registration {
   public:
    Registration() = default;
    // `events`: EPOLLIN, EPOLLOUT, or 0 for none at present.
    Registration(EventLoop& loop, int fd, uint32_t events, Handler& handler, Urgency urgency = Urgency::kUrgent);
    Registration(Registration&& other) noexcept { *this = std::move(other); }
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { End(); }

    void SetEvents(uint32_t events);
    void End();

   private:
    EventLoop* loop_ = nullptr;
    int fd_ = -1;
    uint64_t key_ = 0;
    Urgency urgency_ = Urgency::kUrgent;
  };

  EventLoop() = default;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // False and errno: no descriptor is available. Call it before all other functions except Add.
  bool Open();
  // `timed` must outlive the use of the loop.
  void Add(Timed& timed) { timed_.push_back(&timed); }

  // While nothing urgent is watched, sleeps begin with a nap. `nap` must outlive the use of the loop.
  void set_nap(Nap* nap) { nap_ = nap; }

  // Watches a foreign descriptor: while it is readable it ends Sleep. Its owner handles the event.
  void Watch(int fd);
  void Unwatch(int fd);

  // Releases the lock until a descriptor is ready, Wake() is called, `timeout_ms` has passed (-1: no limit), or a timer
  // expires. Then calls the handlers. False: no descriptor was ready.
  bool Sleep(int timeout_ms);
  void Wake();  // any thread may call it
  // Number of sleeps that have ended. A sleep that has ended needs no Wake(), even if its thread has yet to call the
  // handlers: the Wake() would end the next sleep.
  uint64_t sleeps() const { return sleeps_; }

  // The same without releasing the lock; a wake-up is left for the thread that sleeps. True: a handler was called for a
  // ready descriptor. Foreign descriptors do not count: their owners check them, and a wait in which something seems to
  // move would never sleep.
  bool Dispatch(int timeout_ms);

 private:
  // Descriptors have numbers of their own in epoll, each used once. An event that another thread collected before a
  // Registration ended, or whose Registration an earlier handler ended, therefore finds no handler.
  struct Slot {
    Handler* handler = nullptr;  // null: not in use
    uint32_t generation = 1;
  };
  static constexpr uint64_t kWake = 0, kForeign = 1;  // generation 0

  uint64_t TakeSlot(Handler& handler);
  void Control(int operation, int fd, uint32_t events, uint64_t key);
  int Wait(epoll_event* events, int most, int timeout_ms) const;
  void Tell(const epoll_event& event);
  bool TakeNap(int* timeout_ms);
  std::optional<Clock::time_point> deadline() const;
  void OnTime();

  static constexpr uint32_t kNapsInARow = 64;  // until descriptors are looked at again

  Descriptor epoll_, wake_;
  Nap* nap_ = nullptr;
  int urgent_ = 0;  // registrations, and foreign descriptors
  uint32_t naps_in_a_row_ = 0;
  // Wake() stores `woken_` and then looks at `naps_`; a nap stores `naps_` and then looks at `woken_`. Both are
  // sequentially consistent: at least one of the two sees the other.
  std::atomic<bool> woken_{false}, naps_{false};
  uint64_t sleeps_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<Timed*> timed_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_LOOP_EVENT_LOOP_H_
