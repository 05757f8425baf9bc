#ifndef MPI_HYBRID_P2P_DEVICE_DEVICE_H_
#define MPI_HYBRID_P2P_DEVICE_DEVICE_H_

#include <sys/uio.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/device/partings.h"
#include "mpi_hybrid/p2p/device/presence.h"
#include "mpi_hybrid/p2p/device/told_dead.h"
#include "mpi_hybrid/p2p/device/transport.h"
#include "mpi_hybrid/p2p/engine/engine.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// Brings an Engine's frames to their peers: one loop, and one or more wires, of which the first that reaches a process
// carries all between the two. Knows neither sockets nor descriptors. Guarded by the library's lock; only Sleep lets go
// of it.
class Device {
 public:
  // `engine` outlives it.
  explicit Device(Engine& engine);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  EventLoop& loop() { return loop_; }
  Presence& presence() { return presence_; }
  // A wait of this process that polls, from its begin to its end.
  void BeginWait() { presence_.BeginWait(); }
  void EndWait() {
    if (presence_.EndWait()) [[unlikely]] Leave();
  }
  // Before Start(). The last one reaches everybody.
  void Add(std::unique_ptr<Transport> transport);

  Error Start();
  // Writes what is queued, says goodbye, waits until the others did too; gives up each when nothing moves for
  // `patience`. To each peer at its own pace: one that reads nothing keeps nobody else waiting.
  void Stop(std::chrono::milliseconds patience = kPatience);
  static constexpr std::chrono::milliseconds kPatience{3000};

  // Reads and writes what can be without sleeping; whether anything moved.
  bool Poll();
  // Writes what was queued since the last call, and connects where that is needed; whether anything was written.
  bool Flush() { return !engine_.with_output().empty() && FlushAll(); }
  // Until something comes, loop().Wake(), `timeout_ms` (-1: none) is over, or time brings something; then deals with
  // it. Lets go of the lock. False: nothing came.
  bool Sleep(int timeout_ms);

  // Listens for processes of other jobs, where it does not listen already.
  Error Listen();
  // Begins to end what is between this process and `process`, with which no request is under way; whether that is over.
  void Part(ProcessId process) { partings_.Begin(process, kPatience); }
  bool HasParted(ProcessId process) const { return !partings_.IsUnderWay(process); }

  // Opens connections to the processes that posted receives and probes wait for, so that their death is noticed; for
  // MPI_ANY_SOURCE to 16 that follow this one in the communicator.
  void ConnectToAwaited();

  // The launcher says that `process` is dead: it is gone, at once where there is no connection with it, else when what it sent has been read.
  void OnToldDead(ProcessId process);

  // To this one, where there is no connection yet.
  void ConnectTo(ProcessId process);

  // Transport::WriteAtOnce.
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) {
    return TransportOf(link).WriteAtOnce(link, pieces, total, flow);
  }
  // Transport::WriteSoon.
  size_t WriteSoon(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) {
    return TransportOf(link).WriteSoon(link, pieces, total, flow);
  }

 private:
  bool FlushAll();
  bool FetchPart();
  void Leave();
  using Clock = std::chrono::steady_clock;
  class Farewell;

  Transport& TransportOf(const Link& link) {
    const size_t at = static_cast<size_t>(link.peer());
    return at < routes_.size() && routes_[at] != nullptr ? *routes_[at] : Choose(link);
  }
  Transport& Choose(const Link& link);
  bool HasConnections() const;
  template <typename Done>
  void PollUntil(Done done, std::chrono::milliseconds patience);

  Engine& engine_;
  EventLoop loop_;
  Presence presence_;
  std::vector<std::unique_ptr<Transport>> transports_;
  std::vector<Transport*> routes_;  // by process; null: not chosen yet
  uint32_t polls_ = 0;
  Partings partings_;
  ToldDead told_dead_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_DEVICE_H_
