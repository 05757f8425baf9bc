#ifndef MPI_HYBRID_P2P_LOOP_EVENT_LOOP_H_
#define MPI_HYBRID_P2P_LOOP_EVENT_LOOP_H_

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "mpi_hybrid/core/descriptor.h"

namespace weft::mpi {

// What a thread sleeps in while it waits for MPI: readiness of descriptors (epoll, level-triggered), a wake-up, and
// times. Knows neither messages nor peers. Guarded by the library's lock; only Sleep lets go of it.
class EventLoop {
 public:
  using Clock = std::chrono::steady_clock;

  // Hears of the readiness of a descriptor.
  class Handler {
   public:
    // `events` as in epoll(7). They may be old: the descriptor need not be ready any more. May end any Registration and
    // destroy this.
    virtual void OnReady(uint32_t events) = 0;

   protected:
    ~Handler() = default;
  };

  // Something that happens at its time.
  class Timed {
   public:
    virtual ~Timed() = default;
    virtual std::optional<Clock::time_point> deadline() const = 0;
    // The deadline has come.
    virtual void OnTime(Clock::time_point now) = 0;
  };

  // A descriptor that the loop looks at for a Handler, for as long as this lives. Owns no descriptor; that must live
  // longer than this.
  class Registration {
   public:
    Registration() = default;
    // `events`: EPOLLIN, EPOLLOUT, or 0 for none now.
    Registration(EventLoop& loop, int fd, uint32_t events, Handler& handler);
    Registration(Registration&& other) noexcept { *this = std::move(other); }
    Registration& operator=(Registration&& other) noexcept;
    ~Registration() { End(); }

    void SetEvents(uint32_t events);
    void End();

   private:
    EventLoop* loop_ = nullptr;
    int fd_ = -1;
    uint64_t key_ = 0;
  };

  EventLoop() = default;
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // False and errno: there is no descriptor for it. Before everything else but Add.
  bool Open();
  // `timed` outlives the loop's use.
  void Add(Timed& timed) { timed_.push_back(&timed); }

  // A foreign descriptor, which ends Sleep while it is readable; whoever owns it sees to it.
  void Watch(int fd);
  void Unwatch(int fd);

  // Lets go of the lock until a descriptor is ready, Wake(), `timeout_ms` (-1: none) is over, or it is time for
  // something; then tells those whom it concerns. False: no descriptor was ready.
  bool Sleep(int timeout_ms);
  void Wake();  // from any thread
  // How many sleeps are over. One that is needs no Wake(), though its thread has still to tell: that would end the next.
  uint64_t sleeps() const { return sleeps_; }

  // The same without letting go of the lock; a wake-up is left to the thread that sleeps. True: somebody was told of a
  // ready descriptor. Of a foreign one nothing is said: its owner looks for itself, and a wait for which something seemed
  // to move would never sleep.
  bool Dispatch(int timeout_ms);

 private:
  // Descriptors have numbers of their own in epoll, each given once: an event that another thread collected before a
  // Registration ended, or that is of one that an earlier handler ended, names nobody.
  struct Slot {
    Handler* handler = nullptr;  // null: not in use
    uint32_t generation = 1;
  };
  static constexpr uint64_t kWake = 0, kForeign = 1;  // generation 0

  uint64_t TakeSlot(Handler& handler);
  void Control(int operation, int fd, uint32_t events, uint64_t key);
  int Wait(epoll_event* events, int most, int timeout_ms) const;
  void Tell(const epoll_event& event);
  std::optional<Clock::time_point> deadline() const;
  void OnTime();

  Descriptor epoll_, wake_;
  uint64_t sleeps_ = 0;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_;
  std::vector<Timed*> timed_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_LOOP_EVENT_LOOP_H_
