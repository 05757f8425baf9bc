#ifndef MPI_HYBRID_P2P_DEVICE_TOLD_DEAD_H_
#define MPI_HYBRID_P2P_DEVICE_TOLD_DEAD_H_

#include <functional>
#include <optional>
#include <vector>

#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// Processes that have a connection with this one, and of which the launcher says that they are dead. Mostly the connection says so in the
// same moment, behind all that they sent. It does not where a child of theirs holds it, where the host is gone, and where the wire knows a
// death by silence only: then what has come is read, and that is the end of it. Guarded by the library's lock.
class ToldDead final : public EventLoop::Timed {
 public:
  using Clock = EventLoop::Clock;
  static constexpr std::chrono::milliseconds kGrace{100};   // for the connection to say so, from then on until nothing more is read,
  static constexpr std::chrono::milliseconds kLongest{2000};  // ... or for so long

  ToldDead(Engine& engine, std::function<Transport&(const Link&)> transport_of) : engine_(engine), transport_of_(std::move(transport_of)) {}

  void Add(ProcessId process) { dead_.push_back({process, Clock::now()}); }
  bool empty() const { return dead_.empty(); }
  // After the wires were polled, which brought something or not (`moved`). Whether anything died.
  bool Advance(Clock::time_point now, bool moved);

  std::optional<Clock::time_point> deadline() const override;
  void OnTime(Clock::time_point) override {}  // whoever sleeps polls then

 private:
  struct Dead {
    ProcessId process;
    Clock::time_point since;
  };

  Engine& engine_;
  const std::function<Transport&(const Link&)> transport_of_;
  std::vector<Dead> dead_;  // the oldest first
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_TOLD_DEAD_H_
