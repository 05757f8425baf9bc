#ifndef WIRES_HOST_GRANTS_PLACER_H_
#define WIRES_HOST_GRANTS_PLACER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "llp/ulpdu.h"
#include "wires/host/grants/layout.h"
#include "wires/host/meeting/peer_memory.h"

namespace weft::host {

// The peer's side: writes into the owner's memory and reads it, as the owner's grants allow. Guarded by the peer's
// lock. Owns neither the words nor the memory.
class Placer {
 public:
  Placer(GrantWords& words, PeerMemory& memory) : words_(words), memory_(memory) {}

  // Tells the owner that this side can place data. `reaches`: the result of the test (PeerMemory::TryProbe).
  void SetReaches(bool reaches) {
    reaches_ = reaches;
    if (reaches) words_.reaches.store(1, std::memory_order_release);
  }

  bool reaches() const { return reaches_; }

  // Writes the `length` bytes of `payload`, at most kMostPieces pieces, to `to`. Returns false if no grant covers all
  // of that, or the write failed. The ULPDU is then sent to the owner as usual, and the owner reports what is wrong
  // with it.
  bool Place(const llp::TaggedPlacement& to, std::span<const iovec> payload, size_t length);
  // Copies `length` bytes of the owner's buffer with this tag, from `offset` on, to `to`, at most kMostPieces pieces.
  // Returns false as above; some of `to` may have been overwritten.
  bool Fetch(uint32_t tag, uint64_t offset, std::span<const iovec> to, size_t length);

 private:
  template <typename Access>
  bool Reach(uint32_t tag, uint64_t offset, size_t length, uint32_t right, Access access);

  GrantWords& words_;
  PeerMemory& memory_;
  bool reaches_ = false;
};

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_PLACER_H_
