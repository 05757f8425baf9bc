#ifndef MPI_HYBRID_P2P_DEVICE_TOLD_DEAD_H_
#define MPI_HYBRID_P2P_DEVICE_TOLD_DEAD_H_

#include <functional>
#include <optional>
#include <vector>

#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// Processes that have a connection with this one and that the launcher has reported dead. Usually the connection
// reports the death at the same moment, behind all that they sent. It does not if a child of theirs holds the
// connection, if the host is gone, or if the wire detects a death only by silence. In these cases, data that has
// arrived is read, and then the process counts as gone. Guarded by the library's lock.
class ToldDead final : public EventLoop::Timed {
 public:
  using Clock = EventLoop::Clock;
  // time for the connection to report the death; after it, reading goes on until nothing more is read,
  static constexpr std::chrono::milliseconds kGrace{100};
  static constexpr std::chrono::milliseconds kLongest{2000};  // ... but at most this long

  ToldDead(Engine& engine, std::function<Transport&(const Link&)> transport_of) : engine_(engine), transport_of_(std::move(transport_of)) {}

  void Add(ProcessId process) { dead_.push_back({process, Clock::now()}); }
  bool empty() const { return dead_.empty(); }
  // Call it after the wires were polled. `moved`: whether they brought anything. Returns whether any process died.
  bool Advance(Clock::time_point now, bool moved);

  std::optional<Clock::time_point> deadline() const override;
  void OnTime(Clock::time_point) override {}  // a thread that sleeps polls after this

 private:
  struct Dead {
    ProcessId process;
    Clock::time_point since;
  };

  Engine& engine_;
  const std::function<Transport&(const Link&)> transport_of_;
  std::vector<Dead> dead_;  // oldest first
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_TOLD_DEAD_H_
