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

// The peer's side: places in the owner's memory, and reads of it, what the owner's grants allow. Under the peer's lock. Owns neither the words nor the memory.
class Placer {
 public:
  Placer(GrantWords& words, PeerMemory& memory) : words_(words), memory_(memory) {}

  // Tells the owner that this side can place. `reaches`: that was tried (PeerMemory::TryProbe).
  void SetReaches(bool reaches) {
    reaches_ = reaches;
    if (reaches) words_.reaches.store(1, std::memory_order_release);
  }

  bool reaches() const { return reaches_; }

  // The `length` bytes of `payload`, at most kMostPieces pieces, to where `to` says. False: there is no grant for all of that, or it did not work:
  // it goes to the owner in the ordinary way, who says what is wrong with it.
  bool Place(const llp::TaggedPlacement& to, std::span<const iovec> payload, size_t length);
  // The `length` bytes of the owner's buffer that has this tag, from `offset` on, to `to`, at most kMostPieces pieces. False as above; some of `to` may
  // have been written.
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
