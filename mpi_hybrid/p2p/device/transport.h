#ifndef MPI_HYBRID_P2P_DEVICE_TRANSPORT_H_
#define MPI_HYBRID_P2P_DEVICE_TRANSPORT_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/device/presence.h"
#include "mpi_hybrid/p2p/engine/link.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"

namespace weft::mpi {

// A wire below an Engine: it carries the bytes of links to and from the processes that it reaches, in order and without
// loss. It may use a connection or a descriptor per link, one for all, or none; bytes or whole frames; readiness events
// of its EventLoop or polling. Each wire is a folder with one class of this kind; process_device.cc chooses between
// them.
//
// Of a link it uses PrepareWrite and Written, PrepareRead and ReadDone. It calls Link::Open when the connection is
// established, and may give the link a lane (Link::set_lane). It reports the fate of a process to the engine:
// Engine::OnGone, OnUnreachable. It may do so from all of its functions except WriteAtOnce, WriteSoon, deadline and
// HasConnections.
//
// Guarded by the library's lock. No function sleeps.
class Transport : public EventLoop::Timed {
 public:
  // Becomes reachable and publishes its address, before the job's fence. In a job of one rank it prepares only what
  // Listen needs.
  virtual Error Start() = 0;
  // Becomes reachable in a job of one rank, for processes of other jobs. No effect if it is reachable already.
  virtual Error Listen() = 0;
  // Whether this wire leads to `process`. Both ends of a pair return the same.
  virtual bool Reaches(ProcessId process) const = 0;

  // Begins to connect, unless the link has a connection or one is being made. The result is reported by Link::Open,
  // OnGone or OnUnreachable.
  virtual void Connect(Link& link) = 0;
  // Writes the link's queue as far as the wire accepts it now, and connects if necessary. The rest is sent later
  // without another call; a blocked link does not delay other links. Returns whether any byte was written.
  virtual bool Flush(Link& link) = 0;
  // Writes one frame of `total` bytes, on a link that is idle (Link::is_idle). `pieces` begin with its header and
  // contain the whole frame or a first part of it. Returns the number of bytes written, perhaps 0. This is the fast
  // path: one system call and no allocation. `flow`: for a wire with several streams (Link::StreamOf).
  virtual size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) = 0;
  // The same for a frame that others will follow soon. The wire may keep a copy, which counts as written, until the
  // next frame is written on the link, until Poll, or for at most a millisecond; after that it is sent whatever this
  // process does.
  virtual size_t WriteSoon(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) {
    return WriteAtOnce(link, pieces, total, flow);
  }

  // Reads available data and writes queued data; may dispatch events of the loop. Returns whether anything moved.
  virtual bool Poll() = 0;
  // Tells whether this process is certain to poll; null: unknown. Not owned.
  void set_presence(Presence* presence) { presence_ = presence; }
  // This process is no longer certain to poll (Presence). Operations that were begun on that assumption are changed so
  // that peers no longer need this process.
  virtual void OnLeaving() {}
  // Called before a sleep. From then on, an event ends the sleep by a descriptor of the loop. False: there is something
  // to do already.
  virtual bool Arm() = 0;
  // Called after each sleep for which Arm was called.
  virtual void OnAwake() {}

  // The functions below end the wire, in this order. StopConnecting: no new connection is begun.
  virtual void StopConnecting() = 0;
  // Writes nothing more on the link. The peer learns this after it has received all that was written.
  virtual void EndOutput(Link& link) = 0;
  // Whether a peer has not yet ended its side.
  virtual bool HasConnections() const = 0;
  // Closes all that is left.
  virtual void Close() = 0;

  // Whether there is a connection with the peer, or one is being made.
  virtual bool IsConnected(const Link& link) const = 0;
  // Closes the connection of the link, which is not used again.
  virtual void Drop(const Link& link) = 0;

 protected:
  Presence* presence() const { return presence_; }

 private:
  Presence* presence_ = nullptr;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_TRANSPORT_H_
