#ifndef RDMAP_HOST_H_
#define RDMAP_HOST_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "ddp/types.h"
#include "rdmap/request.h"

namespace weft::rdmap {

enum class Access : uint8_t { kRemoteWrite, kRemoteRead, kReadSink };

// Why memory was refused; the stream turns it into the Terminate that RFC 5040 section 4.8 asks for.
enum class AccessError : uint8_t { kInvalidStag, kBounds, kAccessRights, kStagNotAssociated, kOffsetWrap };

// A receive that a program posted.
struct ReceiveTarget {
  std::span<const iovec> memory;  // stays valid until Received()
  uint64_t length = 0;            // bytes of `memory`
};

// A Send message that arrived whole.
struct ReceivedSend {
  uint32_t length = 0;
  bool solicited = false;
  std::optional<ddp::STag> invalidated;
};

// What the stream asks of the RNIC. Called from within Begin, End, Transmit, OnTransmitted, HasWork; must not call the
// stream back.
class Host {
 public:
  virtual ~Host() = default;

  // Memory of a tagged buffer: `length` bytes at `offset`, contiguous. `length` is never zero: RFC 5040 section 5.2.1
  // and RFC 5041 section 5.2 forbid to check the STag of an empty message. kReadSink: `stag` is a Request's sink_stag.
  // The memory is placed into until End(); of kRemoteRead, the UlpduWriter may refer to it until what was appended is
  // consumed.
  virtual Result<uint8_t*, AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                                Access access) = 0;

  // The oldest posted receive that no message has taken; nullopt: none (the stream ends with a Terminate).
  virtual std::optional<ReceiveTarget> TakeReceive() = 0;
  // A Send message is complete in the receive taken for it. Invalidation was done by Invalidate().
  virtual void Received(const ReceivedSend& message) = 0;
  // Send with Invalidate: makes `stag` unusable. An error ends the stream.
  virtual std::optional<AccessError> Invalidate(ddp::STag stag) = 0;

  // The next request to transmit, in posted order; nullptr: none. The stream calls Started() when it takes it.
  virtual Request* NextRequest() = 0;
  virtual void Started(Request& request) = 0;
  // Every byte of a Write or Send was handed to the lower layer (RFC 5040 section 6.1: the source may be reused).
  virtual void Sent(Request& request) = 0;
  // A Read's data are all in place.
  virtual void ReadDone(Request& request) = 0;
};

}  // namespace weft::rdmap

#endif  // RDMAP_HOST_H_
