#ifndef WIRES_HOST_GRANTS_PLACER_H_
#define WIRES_HOST_GRANTS_PLACER_H_

#include <sys/uio.h>

#include <cstddef>
#include <span>

#include "llp/ulpdu.h"
#include "wires/host/grants/layout.h"
#include "wires/host/meeting/peer_memory.h"

namespace weft::host {

// The peer's side: places in the owner's memory what the owner's grants allow. Under the peer's lock. Owns neither the words nor the memory.
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

 private:
  GrantWords& words_;
  PeerMemory& memory_;
  bool reaches_ = false;
};

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_PLACER_H_
