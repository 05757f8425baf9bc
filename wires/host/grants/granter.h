#ifndef WIRES_HOST_GRANTS_GRANTER_H_
#define WIRES_HOST_GRANTS_GRANTER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>

#include "llp/ulpdu.h"
#include "wires/host/grants/layout.h"

namespace weft::host {

// The owner's side: opens buffers to the peer, and shuts them. Nothing here waits. Guarded by the owner's lock, except
// for Settled(). Does not own the words.
//
// A shut buffer is closed to the peer at once, except for one access that has already begun. Settled() tells when that
// is over. A read need not be waited for: the peer drops what it read from a buffer that was shut meanwhile. A grant
// that the peer is still using is not given to another buffer.
class Granter {
 public:
  explicit Granter(GrantWords& words) : words_(words) {}

  bool peer_reaches() const { return words_.reaches.load(std::memory_order_relaxed) != 0; }
  bool IsOpen(uint32_t tag) const { return IsAt(HomeOf(tag), tag) || PlaceOf(tag) != kGrants; }

  // Shuts another buffer if no grant is free. Returns false if the buffer stays shut, because the peer uses all
  // possible grants.
  bool Open(const llp::TaggedBuffer& buffer);
  void Shut(const void* begin, size_t length);  // buffers that overlap these bytes
  void ShutAll();

  // After Shut(): whether the peer no longer writes any of these bytes. Thread safe.
  bool Settled(const void* begin, size_t length);

 private:
  bool IsAt(size_t place, uint32_t tag) const { return open_[place].length != 0 && open_[place].tag == tag; }
  size_t PlaceOf(uint32_t tag) const;
  size_t FreePlaceFor(uint32_t tag);
  bool IsFree(size_t place);
  void ShutPlace(size_t place);

  GrantWords& words_;
  std::array<llp::TaggedBuffer, kGrants> open_{};  // open buffers; length 0: none
  size_t count_ = 0;
  size_t next_to_give_up_ = 0;

  std::mutex mutex_;                                 // guards the members below
  std::array<llp::TaggedBuffer, kGrants> leaving_{}; // shut while the peer used them; length 0: none
};

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_GRANTER_H_
