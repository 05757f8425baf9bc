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

// One wire under an Engine: it carries the bytes of links to and from the processes that it reaches, in order and
// without loss. How it does so is its own matter: a connection or a descriptor for each link, one for all, or none;
// bytes or whole frames; readiness by the EventLoop that it is given or by being polled. A wire is a folder with one
// class of this kind in it; process_device.cc chooses.
//
// Of a link it uses PrepareWrite and Written, PrepareRead and ReadDone, and tells it when the way is there
// (Link::Open); it may give it a lane (Link::set_lane). What befalls a process it tells the engine: Engine::OnGone, OnUnreachable. It may do so from each of
// its functions but WriteAtOnce, WriteSoon, deadline and HasConnections.
//
// Guarded by the library's lock. Nothing here sleeps.
class Transport : public EventLoop::Timed {
 public:
  // Begins to be reachable and publishes where, before the job's fence; in a job of one only what it needs for Listen.
  virtual Error Start() = 0;
  // Does so in a job of one, for processes of other jobs; nothing where it is reachable already.
  virtual Error Listen() = 0;
  // Whether this wire leads to `process`. Both ends of a pair answer alike.
  virtual bool Reaches(ProcessId process) const = 0;

  // Begins to connect, where the link has no connection and none is on its way. It ends with Link::Open, OnGone or
  // OnUnreachable.
  virtual void Connect(Link& link) = 0;
  // Writes what the link has queued as far as the wire takes it now; connects where that is needed. What is left goes
  // out by itself as soon as it can: a link that cannot go on delays no other. Whether any byte went.
  virtual bool Flush(Link& link) = 0;
  // Writes one frame of `total` bytes, on a link that is idle (Link::is_idle): its header is at the front of `pieces`,
  // which hold all of it or a first part. The bytes that went out, perhaps none. The fast path: one system call, no
  // allocation. `flow` is for a wire with several streams (Link::StreamOf).
  virtual size_t WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) = 0;
  // The same for a frame that others follow soon: the wire may keep a copy, which counts as out, until the next is
  // written on the link, until Poll, or for a millisecond at most; then it goes whatever this process does.
  virtual size_t WriteSoon(Link& link, std::span<const iovec> pieces, size_t total, uint32_t flow) {
    return WriteAtOnce(link, pieces, total, flow);
  }

  // Reads what is there and writes what was left; may have the loop dispatch. Whether anything moved.
  virtual bool Poll() = 0;
  // Whether this process is sure to poll; null: that is not known. Not owned.
  void set_presence(Presence* presence) { presence_ = presence; }
  // The process is not sure to poll any more (Presence): what was begun for a process that does is changed so that peers need it no more.
  virtual void OnLeaving() {}
  // Before a sleep: what comes from now on ends it by a descriptor of the loop. False: there is something to do
  // already.
  virtual bool Arm() = 0;
  // After each sleep before which Arm was called.
  virtual void OnAwake() {}

  // The end, in this order. No new connection is begun ...
  virtual void StopConnecting() = 0;
  // ... nothing more is written on a link, of which the peer learns behind what was written ...
  virtual void EndOutput(Link& link) = 0;
  // ... whether a peer has not yet ended its side ...
  virtual bool HasConnections() const = 0;
  // ... and whatever is left is closed.
  virtual void Close() = 0;

  // Whether there is a connection with the peer, or one on its way.
  virtual bool IsConnected(const Link& link) const = 0;
  // Closes what there is; the link is not used again.
  virtual void Drop(const Link& link) = 0;

 protected:
  Presence* presence() const { return presence_; }

 private:
  Presence* presence_ = nullptr;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_DEVICE_TRANSPORT_H_
