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

// A process that connected to this one. Answer::Write needs these bytes for the answer.
struct Visitor {
  Socket socket;
  uint8_t challenge[Challenge::kLength];
  uint8_t hello_bytes[Hello::kLength];
  uint64_t window = 0;      // in its Hello
  ProcessId process = -1;   // its number
  std::optional<Bond> bond; // the bond of its proof
};

// The listener, and the accepted connections that have not been authenticated yet. There are at most kMost of them.
// When there is no space for another, the oldest is dropped, if it is older than kShortest. While there is space,
// silence is no reason to close a connection: a rank of the job that computes is silent for as long as it computes.
// When no space can be made, connectors wait in the kernel's backlog, and the listener is not watched for a while.
// After kStarved without a descriptor, all waiting connections are accepted and closed, so that ranks of the job learn
// of it (dial.h). One descriptor is kept in reserve for that.
class Strangers final : EventLoop::Handler {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t kMost = 1024;
  static constexpr auto kShortest = std::chrono::seconds(1);
  static constexpr auto kPause = std::chrono::milliseconds(100);
  static constexpr auto kStarved = std::chrono::seconds(5);

  // `admit` is called for a connection that is authenticated as one of `processes` or came through one of its ports,
  // and that is meant for this process. It owns the connection from then on. `loop` and `processes` must outlive this
  // object.
  Strangers(EventLoop& loop, ProcessTable& processes, std::function<void(Visitor)> admit)
      : loop_(loop), processes_(processes), admit_(std::move(admit)) {}

  void Listen(Socket listener);
  void Close();

  // The timer: call OnTime when deadline() has come.
  std::optional<Clock::time_point> deadline() const { return paused_until_; }
  void OnTime(Clock::time_point now);
  // Closes the connection that has been silent for longest, if that is long enough. Returns whether it closed one.
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
  std::optional<Clock::time_point> paused_until_;  // the listener is not watched until then
  Socket reserve_;                                 // a descriptor; none if another thread took it
  std::optional<Clock::time_point> starved_since_;
  std::optional<Clock::time_point> told_;  // when the shortage was reported
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_TCP_STRANGERS_H_
