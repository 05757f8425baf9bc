#ifndef WIRES_HOST_GRANTS_GRANTER_H_
#define WIRES_HOST_GRANTS_GRANTER_H_

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "llp/ulpdu.h"
#include "wires/host/grants/layout.h"

namespace weft::host {

// The owner's side: opens buffers to the peer, and shuts them. Under the owner's lock. Does not own the words.
class Granter {
 public:
  // A peer that was stopped, or died, while it placed in a buffer that is to be shut is waited for so long.
  static constexpr std::chrono::milliseconds kLimit{200};

  explicit Granter(GrantWords& words) : words_(words) {}

  bool peer_reaches() const { return words_.reaches.load(std::memory_order_relaxed) != 0; }
  bool IsOpen(uint32_t tag) const { return open_[GrantOf(tag)].length != 0 && open_[GrantOf(tag)].tag == tag; }

  // All return after the peer places no longer in what was shut (Open: what had that place before). False: it does not say so within kLimit; the
  // connection is to end.
  [[nodiscard]] bool Open(const llp::TaggedBuffer& buffer);
  [[nodiscard]] bool Shut(const void* begin, size_t length);  // buffers that overlap these bytes
  [[nodiscard]] bool ShutAll();

 private:
  bool ShutGrant(size_t number);

  GrantWords& words_;
  std::array<llp::TaggedBuffer, kGrants> open_{};  // what is so; length 0: nothing
  size_t count_ = 0;
};

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_GRANTER_H_
