#ifndef MPI_HYBRID_P2P_HOST_PEER_PROCESS_H_
#define MPI_HYBRID_P2P_HOST_PEER_PROCESS_H_

#include <sys/types.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "mpi_hybrid/core/descriptor.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/host/segment.h"
#include "mpi_hybrid/host/process_reader.h"

namespace weft::mpi::host {

// The process at a place of the host segment: its death, and its memory.
class PeerProcess final : EventLoop::Handler {
 public:
  // False: the process no longer exists.
  bool Open(EventLoop& loop, const Segment& segment, int place);

  // The loop found that the process died. Without a descriptor: it was found dead by Look().
  bool is_dead() const { return dead_; }
  bool Look();  // asks the kernel and returns is_dead()
  bool has_descriptor() const { return static_cast<bool>(pidfd_); }

  // Whether the kernel lets this process read the peer's memory. The peer has said that `cookie` is at `address` and
  // that its AddressSpaceMark() is `mark`.
  bool TryToRead(uint64_t mark, uint64_t address, std::span<const uint8_t> cookie) {
    reader_ = ProcessReader(reader_.pid(), mark);
    return reader_.Reaches(address, cookie);
  }
  // Like process_vm_readv(2), but never reads a later process with the same pid. Reads at most `bytes`. 0: the kernel
  // refuses to copy them. -1: the process is gone.
  ssize_t Read(std::span<const iovec> to, uint64_t from, size_t bytes);

 private:
  void OnReady(uint32_t events) override;

  const Segment* segment_ = nullptr;
  int place_ = -1;
  ProcessReader reader_;
  Descriptor pidfd_;
  EventLoop::Registration registration_;
  bool dead_ = false;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_P2P_HOST_PEER_PROCESS_H_
