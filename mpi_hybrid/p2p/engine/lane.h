#ifndef MPI_HYBRID_P2P_ENGINE_LANE_H_
#define MPI_HYBRID_P2P_ENGINE_LANE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/p2p/engine/payload.h"

namespace weft::mpi {

// The fast path of a link whose wire is memory that both processes map (Link::lane). One whole frame at a time is
// written where the peer reads it, or read where the peer wrote it, without the link's queue and without system calls.
// Guarded by the library's lock.
class Lane {
 public:
  // Where to write the header (FrameHeader::kLength bytes) and the body of a frame. Null: use the link's queue instead.
  struct Room {
    uint8_t* header = nullptr;
    uint8_t* body = nullptr;
  };

  // Space for a frame, on an idle link (Link::is_idle). Close must follow at once: no other frame may come in between.
  virtual Room Open(size_t body_bytes) = 0;
  // Header and body are written; the frame is passed to the peer.
  virtual void Close(size_t body_bytes) = 0;

  // The next frame to read, if all of it is available and can be accessed directly. Returns the number of pieces; the
  // first one contains the header. The frame stays the next one. The peer may change it meanwhile, so data must be
  // copied before it is checked. 0: there is no such frame; Transport::Poll then handles what is available.
  virtual size_t Peek(std::span<iovec, 2> pieces) = 0;
  // The frame of Peek has been copied and is removed.
  virtual void Taken() = 0;

  // Whether the peer is certain to poll until it has sent requested data. Then it delivers the data faster than Fetch
  // would.
  virtual bool PeerStays() const = 0;
  // Copies `bytes` bytes from `offer` on, which must be within the peer's offer (Link::Offer), to `to`, and advances
  // `to`. False: it is not possible, and `to` has advanced by an unknown length; the peer must be asked for the data.
  virtual bool Fetch(Payload& to, uint64_t offer, uint64_t bytes) = 0;

 protected:
  ~Lane() = default;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_LANE_H_
