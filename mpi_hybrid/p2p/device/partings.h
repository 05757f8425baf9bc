#ifndef MPI_HYBRID_P2P_DEVICE_PARTINGS_H_
#define MPI_HYBRID_P2P_DEVICE_PARTINGS_H_

#include <chrono>
#include <functional>
#include <optional>
#include <vector>

#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// Closes the connections between this process and single others, for example when MPI_Comm_disconnect has freed the
// last communicator with one. Queued data is written, and each side says goodbye and ends its output. When both have,
// or when one took longer than its patience, the connection and the link are removed. Guarded by the library's lock.
class Partings final : public EventLoop::Timed {
 public:
  using Clock = EventLoop::Clock;

  // `transport_of`: the wire of a link. `forget`: removes all other state of a process.
  Partings(Engine& engine, std::function<Transport&(const Link&)> transport_of, std::function<void(ProcessId)> forget)
      : engine_(engine), transport_of_(std::move(transport_of)), forget_(std::move(forget)) {}

  // No request of the program may be pending with `process`.
  void Begin(ProcessId process, Clock::duration patience);
  bool IsUnderWay(ProcessId process) const;
  bool empty() const { return partings_.empty(); }
  // Goes on as far as possible now. Returns whether anything moved. May destroy links.
  bool Advance(Clock::time_point now);

  std::optional<Clock::time_point> deadline() const override;
  void OnTime(Clock::time_point now) override { Advance(now); }

 private:
  enum class Stage : uint8_t { kTalks, kSaid, kEnded };
  struct Parting {
    ProcessId process;
    Clock::time_point give_up_at;
    Stage stage = Stage::kTalks;
  };

  // True: the connection is closed.
  bool Step(Parting& parting, Clock::time_point now, bool* moved);

  Engine& engine_;
  const std::function<Transport&(const Link&)> transport_of_;
  const std::function<void(ProcessId)> forget_;
  std::vector<Parting> partings_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_PARTINGS_H_
