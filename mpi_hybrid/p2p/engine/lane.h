#ifndef MPI_HYBRID_P2P_ENGINE_LANE_H_
#define MPI_HYBRID_P2P_ENGINE_LANE_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/p2p/engine/payload.h"

namespace weft::mpi {

// The fast path of a link whose wire is memory that both processes see (Link::lane): one whole frame at a time is written to where the peer
// reads it, or read where the peer wrote it, past the queue of the link and without system calls. Guarded by the library's lock.
class Lane {
 public:
  // Where the header (FrameHeader::kLength bytes) and the body of a frame go; null: not this way, but by the link's queue.
  struct Room {
    uint8_t* header = nullptr;
    uint8_t* body = nullptr;
  };

  // Room for a frame, on a link that is idle (Link::is_idle). It is the next one whatever happens in between: Close follows at once.
  virtual Room Open(size_t body_bytes) = 0;
  // Header and body are written; the peer has them.
  virtual void Close(size_t body_bytes) = 0;

  // The next frame to read, where all of it is there and can be shown: in so many pieces, its header is in the first. It stays the next one,
  // and the peer may change it meanwhile: what is looked at is to be copied first. 0: none, or none of that kind; then Transport::Poll brings
  // what there is.
  virtual size_t Peek(std::span<iovec, 2> pieces) = 0;
  // That frame was copied, and is over.
  virtual void Taken() = 0;

  // Whether the peer is sure to poll until it has sent what it is asked for: then it has the data here sooner than they can be fetched.
  virtual bool PeerStays() const = 0;
  // Copies `bytes` from `offer` on, which is in what the peer offered (Link::Offer), to where `to` says, and advances that. False: that cannot be, and `to`
  // has advanced by an unknown length; the peer is to be asked for the data.
  virtual bool Fetch(Payload& to, uint64_t offer, uint64_t bytes) = 0;

 protected:
  ~Lane() = default;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_LANE_H_
