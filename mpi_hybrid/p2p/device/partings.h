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

// The ends of what is between this process and single others, as when MPI_Comm_disconnect has freed the last
// communicator with one: what was sent is written, each side says goodbye and ends its output, and when both have, or
// one took longer than its patience, nothing is left of the connection or of the link. Guarded by the library's lock.
class Partings final : public EventLoop::Timed {
 public:
  using Clock = EventLoop::Clock;

  // `transport_of`: the wire of a link. `forget`: the rest that is kept by process.
  Partings(Engine& engine, std::function<Transport&(const Link&)> transport_of, std::function<void(ProcessId)> forget)
      : engine_(engine), transport_of_(std::move(transport_of)), forget_(std::move(forget)) {}

  // No request of the program is under way with `process`.
  void Begin(ProcessId process, Clock::duration patience);
  bool IsUnderWay(ProcessId process) const;
  bool empty() const { return partings_.empty(); }
  // As far as it goes now; whether anything moved. May destroy links.
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

  // True: it is over.
  bool Step(Parting& parting, Clock::time_point now, bool* moved);

  Engine& engine_;
  const std::function<Transport&(const Link&)> transport_of_;
  const std::function<void(ProcessId)> forget_;
  std::vector<Parting> partings_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_PARTINGS_H_
