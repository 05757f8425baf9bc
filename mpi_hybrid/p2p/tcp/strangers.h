#ifndef MPI_HYBRID_P2P_TCP_STRANGERS_H_
#define MPI_HYBRID_P2P_TCP_STRANGERS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <optional>

#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/greeting/greeting.h"
#include "mpi_hybrid/p2p/tcp/socket.h"

namespace weft::mpi {

// One who connected to us. Of these bytes Answer::Write makes its answer.
struct Visitor {
  Socket socket;
  uint8_t challenge[Challenge::kLength];
  uint8_t hello_bytes[Hello::kLength];
  uint64_t window = 0;      // of its Hello
  ProcessId process = -1;   // who it is
  std::optional<Bond> bond; // by which it proved that
};

// The listener and the connections that it accepted and that have not yet proven whose they are. Their number is
// bounded: there are kMost of them, and the oldest gives way, after kShortest, when there is no room for the next.
// While there is room silence is no reason to close one: a rank of the job that computes is silent for as long as it
// computes. Where there is room for none, who connects waits in the kernel's backlog, and the listener is not looked at
// for a while. After kStarved without a descriptor all who wait are turned away, so that those of the job learn of it
// (dial.h); for that one descriptor is kept in reserve.
class Strangers final : EventLoop::Handler {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMost = 1024;
  static constexpr auto kShortest = std::chrono::seconds(1);
  static constexpr auto kPause = std::chrono::milliseconds(100);
  static constexpr auto kStarved = std::chrono::seconds(5);

  // `admit` is called for one who proved to be one of `processes`, or came by one of its doors, and means this one; it
  // owns the connection from then on. `loop` and `processes` outlive this.
  Strangers(EventLoop& loop, ProcessTable& processes, std::function<void(Visitor)> admit)
      : loop_(loop), processes_(processes), admit_(std::move(admit)) {}

  void Listen(Socket listener);
  void Close();

  // What time brings: call it when deadline() has come.
  std::optional<Clock::time_point> deadline() const { return paused_until_; }
  void OnTime(Clock::time_point now);
  // Closes the connection that has been silent for longest, when that is long enough; whether one was.
  bool GiveWay(Clock::time_point now);

 private:
  struct Stranger final : EventLoop::Handler {
    Stranger(Strangers& owner, Socket socket, Clock::time_point now);
    void OnReady(uint32_t) override { owner.Read(*this); }

    Strangers& owner;
    Visitor visitor;
    const Clock::time_point since;
    size_t have = 0;
    std::list<Stranger>::iterator place;
    EventLoop::Registration registration;
  };

  void OnReady(uint32_t) override { Accept(); }  // the listener
  void Accept();
  void OnShortage(int error, Clock::time_point now);
  void TurnAway();
  void Reserve();
  void Pause(Clock::time_point now);
  void Take(Socket socket, Clock::time_point now);
  void Read(Stranger& stranger);
  Visitor Remove(Stranger& stranger);

  EventLoop& loop_;
  ProcessTable& processes_;
  const std::function<void(Visitor)> admit_;
  Socket listener_;
  EventLoop::Registration registration_;           // of the listener
  std::list<Stranger> strangers_;                  // oldest first
  std::optional<Clock::time_point> paused_until_;  // the listener is not watched
  Socket reserve_;                                 // a descriptor; none when another thread was faster
  std::optional<Clock::time_point> starved_since_;
  std::optional<Clock::time_point> told_;  // of it
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_STRANGERS_H_
