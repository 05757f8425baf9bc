#ifndef DDP_UNTAGGED_QUEUE_H_
#define DDP_UNTAGGED_QUEUE_H_

#include <cstdint>
#include <optional>

#include "ddp/error.h"
#include "ddp/header.h"
#include "ddp/types.h"

namespace weft::ddp {

// The receiving end of one untagged queue, over a lower layer that delivers in order (RFC 5041 section 5.2). Messages
// arrive in MSN order, the segments of a message in MO order without gaps. The owner has the buffers.
class UntaggedQueue {
 public:
  // Checks MSN and MO of a segment. Anything but the next byte of the next message is an error, because the lower layer
  // loses nothing.
  std::optional<Error> CheckPosition(const UntaggedHeader& header) const;

  // Checks that `length` more bytes fit a buffer of `capacity` bytes, and a DDP message (below 2^32 bytes).
  std::optional<Error> CheckRoom(uint64_t length, uint64_t capacity) const;

  // A segment was placed; `last`: the message is complete.
  void Advance(uint32_t length, bool last);

  bool message_open() const { return open_; }  // some of its segments have arrived, but not the last
  uint32_t offset() const { return offset_; }  // bytes of the open message received so far
  Msn next_msn() const { return next_; }

 private:
  Msn next_{1};
  uint32_t offset_ = 0;
  bool open_ = false;
};

}  // namespace weft::ddp

#endif  // DDP_UNTAGGED_QUEUE_H_
