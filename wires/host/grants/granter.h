#ifndef WIRES_HOST_GRANTS_GRANTER_H_
#define WIRES_HOST_GRANTS_GRANTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "llp/ulpdu.h"
#include "wires/host/grants/layout.h"

namespace weft::host {

// The owner's side: opens buffers to the peer, and shuts them. Nothing here waits. Under the owner's lock, but for Settled(). Does not own the words.
//
// A buffer that is shut is closed to the peer at once, but for one access that it has begun already. Settled() says when that is over. An access that reads
// need not be waited for: the peer throws away what it read of a buffer that was shut meanwhile. A place that the peer is still using is given to no
// other buffer.
class Granter {
 public:
  explicit Granter(GrantWords& words) : words_(words) {}

  bool peer_reaches() const { return words_.reaches.load(std::memory_order_relaxed) != 0; }
  bool IsOpen(uint32_t tag) const { return IsAt(HomeOf(tag), tag) || PlaceOf(tag) != kGrants; }

  // Another buffer is shut for it if there is no free place. False: it stays shut, since there is none that the peer does not use.
  bool Open(const llp::TaggedBuffer& buffer);
  void Shut(const void* begin, size_t length);  // buffers that overlap these bytes
  void ShutAll();

  // After Shut(): the peer does not write any of these bytes any more. Thread safe.
  bool Settled(const void* begin, size_t length);

 private:
  bool IsAt(size_t place, uint32_t tag) const { return open_[place].length != 0 && open_[place].tag == tag; }
  size_t PlaceOf(uint32_t tag) const;
  size_t FreePlaceFor(uint32_t tag);
  bool IsFree(size_t place);
  void ShutPlace(size_t place);

  GrantWords& words_;
  std::array<llp::TaggedBuffer, kGrants> open_{};  // what is so; length 0: nothing
  size_t count_ = 0;
  size_t next_to_give_up_ = 0;

  std::mutex mutex_;                                 // guards what follows
  std::array<llp::TaggedBuffer, kGrants> leaving_{}; // was shut while the peer used it; length 0: nothing
};

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_GRANTER_H_
