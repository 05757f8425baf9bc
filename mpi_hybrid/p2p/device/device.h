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

// Carries an Engine's frames to their peers. It has one loop, and one or more wires; the first wire that reaches a
// process carries everything between the two. It knows neither sockets nor descriptors. Guarded by the library's lock;
// only Sleep releases it.
class Device {
 public:
  // `engine` must outlive it.
  explicit Device(Engine& engine);
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  EventLoop& loop() { return loop_; }
  Presence& presence() { return presence_; }
  // Enclose a wait of this process that polls.
  void BeginWait() { presence_.BeginWait(); }
  void EndWait() {
    if (presence_.EndWait()) [[unlikely]] Leave();
  }
  // Call before Start(). The last transport must reach every process.
  void Add(std::unique_ptr<Transport> transport);

  Error Start();
  // Writes queued data, says goodbye, and waits until the peers have done so too. It gives up a peer when nothing moves
  // for `patience`. Each peer has its own pace: one that reads nothing does not delay the others.
  void Stop(std::chrono::milliseconds patience = kPatience);
  static constexpr std::chrono::milliseconds kPatience{3000};

  // Reads and writes as far as possible without sleeping. Returns whether anything moved.
  bool Poll();
  // Writes what was queued since the last call, and connects where necessary. Returns whether anything was written.
  bool Flush() { return !engine_.with_output().empty() && FlushAll(); }
  // Sleeps until data arrives, loop().Wake() is called, `timeout_ms` has passed (-1: no limit), or a timer expires;
  // then handles the event. Releases the lock while it sleeps. False: nothing arrived.
  bool Sleep(int timeout_ms);

  // Starts to listen for processes of other jobs, unless it does so already.
  Error Listen();
  // Begins to close the connection between this process and `process`; no request may be pending with it. HasParted
  // tells whether it is closed.
  void Part(ProcessId process) { partings_.Begin(process, kPatience); }
  bool HasParted(ProcessId process) const { return !partings_.IsUnderWay(process); }

  // Opens connections to the processes that posted receives and probes wait for, so that their death is noticed. For
  // MPI_ANY_SOURCE it connects to the 16 processes that follow this one in the communicator.
  void ConnectToAwaited();

  // The launcher has reported that `process` is dead. It counts as gone at once if there is no connection to it,
  // otherwise when all that it sent has been read.
  void OnToldDead(ProcessId process);

  // Connects to this process, if there is no connection yet.
  void ConnectTo(ProcessId process);

  // See Transport::WriteAtOnce.
  size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) {
    return TransportOf(link).WriteAtOnce(link, pieces, total, flow);
  }
  // See Transport::WriteSoon.
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
