#ifndef RDMAP_HOST_H_
#define RDMAP_HOST_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/result.h"
#include "ddp/types.h"
#include "llp/ulpdu.h"
#include "rdmap/request.h"

namespace weft::rdmap {

enum class Access : uint8_t { kRemoteWrite, kRemoteRead, kReadSink };

// Why an access to memory was refused. The stream turns it into the Terminate of RFC 5040 section 4.8.
enum class AccessError : uint8_t {
  kInvalidStag,
  kBounds,
  kAccessRights,
  kStagNotAssociated,
  kOffsetWrap,
  kMisaligned,  // memory of an atomic operation is not at a multiple of eight bytes
};

// A receive that the program posted. The lengths of its pieces are known. Their addresses are looked up only as far as
// messages need them: memory that gets no data is not checked.
struct ReceiveTarget {
  std::span<const iovec> memory;  // it and the addresses in it stay valid until Received()
  uint64_t length = 0;            // bytes of `memory`
  uint64_t usable = 0;            // bytes at its start that data may be placed into
};

// A Send message that arrived completely, or the immediate data behind a Write.
struct ReceivedSend {
  uint32_t length = 0;  // bytes in the receive; for immediate data, bytes of the Write
  bool solicited = false;
  std::optional<ddp::STag> invalidated;
  std::optional<uint32_t> immediate;  // four bytes in the order of the peer's program
  bool of_write = false;
};

// RFC 7306 section 5.1, with both masks (all ones for the plain operations).
struct AtomicOperation {
  AtomicCode code = AtomicCode::kFetchAdd;
  uint64_t add_or_swap = 0, add_or_swap_mask = ~uint64_t{0};
  uint64_t compare = 0, compare_mask = ~uint64_t{0};
};

// What the stream needs from the RNIC. Called from within Begin, End, Transmit, OnTransmitted and HasWork. Must not
// call the stream.
class Host {
 public:
  virtual ~Host() = default;

  // Returns the memory of a tagged buffer: `length` contiguous bytes at `offset`. `length` is never zero: RFC 5040
  // section 5.2.1 and RFC 5041 section 5.2 forbid checking the STag of an empty message. kReadSink: `stag` is a
  // Request's sink_stag. Data is placed into the memory until End(). With kRemoteRead, the UlpduWriter may reference it
  // until what was appended is consumed.
  virtual Result<uint8_t*, AccessError> Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                                Access access) = 0;

  // The whole of a tagged buffer that the peer may write or read and that does not move (llp::UlpduSink::OpenBuffer).
  // nullopt: there is no such buffer.
  virtual std::optional<llp::TaggedBuffer> OpenBuffer(ddp::STag) { return std::nullopt; }

  // Takes the oldest posted receive that no message has taken. At least `needed` of its bytes are usable, or all of
  // them if it is shorter. nullopt: there is none. A plain stream then ends with a Terminate. An extended stream lets
  // the peer wait if no receive was posted (ReceivesExhausted), and ends otherwise.
  virtual std::optional<ReceiveTarget> TakeReceive(uint64_t needed) = 0;
  // `needed` bytes (at most its length) of the receive that was taken last are needed now. Returns how many are usable.
  // If fewer, its memory is not what the program said, and the stream ends as above.
  virtual uint64_t ExtendReceive(uint64_t needed) { return needed; }
  virtual bool ReceivesExhausted() const { return false; }  // after TakeReceive() returned none: no receive was posted
  // A Send message is complete in its receive. Invalidate() has already been called.
  virtual void Received(const ReceivedSend& message) = 0;
  // Send with Invalidate: makes `stag` unusable. An error ends the stream.
  virtual std::optional<AccessError> Invalidate(ddp::STag stag) = 0;

  // The next request to transmit, in the order of posting; nullptr: none. The stream calls Started() when it takes it.
  virtual Request* NextRequest() = 0;
  virtual void Started(Request& request) = 0;
  // Every byte of a Write or Send was handed to the lower layer (RFC 5040 section 6.1: the source may be reused). On a
  // reliable stream the peer has received it.
  virtual void Sent(Request& request) = 0;
  // All data of a Read, or the result of an atomic operation, is in place.
  virtual void ReadDone(Request& request) = 0;
  // Before ReadDone(): this end has copied the data out of the peer's memory by itself, and nothing of it was received.
  virtual void Fetched(const Request& /*request*/) {}

  // The program has unmapped the memory of the oldest receive that is being filled. The stream ends.
  virtual void ReceiveIsGone() {}
  // The program has unmapped the memory for the result of our Read or atomic operation. The stream accepts nothing
  // more, and the host ends it.
  virtual void SinkIsGone(Request&) {}

  // Extended streams only.
  //
  // Carries out `operation` on the eight bytes at `offset`, atomically for all observers, and returns their previous
  // value. Their address must be 64-bit aligned (kMisaligned, RFC 7306 section 8.2), whatever the offset is.
  virtual Result<uint64_t, AccessError> Atomic(ddp::STag, ddp::TaggedOffset, const AtomicOperation&) {
    return AccessError::kInvalidStag;
  }
  // A Write of the peer was refused that Immediate Data would have followed. The receive that is posted for the
  // immediate data fails. The stream ends.
  virtual void WriteRefused() {}
  // The peer has no receive for `request`. It and all requests started after it must be given to the stream again
  // (NextRequest) after the host has called Stream::Resume(), `timer` later (an encoded min_rnr_timer, see
  // ibv_modify_qp(3)).
  virtual void ReceiverNotReady(Request& request, uint8_t timer) {}
  // Targeted streams: the next calls of TakeReceive(), Invalidate() and Atomic(), and those for remote memory, are for
  // target `number`. Returns false if there is no such target.
  virtual bool SelectTarget(uint32_t number) { return false; }
};

}  // namespace weft::rdmap

#endif  // RDMAP_HOST_H_
