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

// Why memory was refused; the stream turns it into the Terminate that RFC 5040 section 4.8 asks for.
enum class AccessError : uint8_t {
  kInvalidStag,
  kBounds,
  kAccessRights,
  kStagNotAssociated,
  kOffsetWrap,
  kMisaligned,  // an atomic's memory: not at a multiple of eight bytes
};

// A receive that a program posted. Its pieces have their lengths; where they lie is known as far as messages have needed it: memory that no
// byte goes into is not looked at.
struct ReceiveTarget {
  std::span<const iovec> memory;  // stays valid until Received(), and so do the addresses in it
  uint64_t length = 0;            // bytes of `memory`
  uint64_t usable = 0;            // of these, from the start, may be placed into
};

// A Send message that arrived whole, or the immediate data behind a Write.
struct ReceivedSend {
  uint32_t length = 0;  // bytes in the receive; of the Write, which are where the peer wanted them
  bool solicited = false;
  std::optional<ddp::STag> invalidated;
  std::optional<uint32_t> immediate;  // four bytes as the peer's program laid them out
  bool of_write = false;
};

// RFC 7306 section 5.1, with both masks (all ones for the plain operations).
struct AtomicOperation {
  AtomicCode code = AtomicCode::kFetchAdd;
  uint64_t add_or_swap = 0, add_or_swap_mask = ~uint64_t{0};
  uint64_t compare = 0, compare_mask = ~uint64_t{0};
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

  // All of a tagged buffer that is open to the peer's Writes or Reads and stays where it is (llp::UlpduSink::OpenBuffer); nullopt: not so.
  virtual std::optional<llp::TaggedBuffer> OpenBuffer(ddp::STag) { return std::nullopt; }

  // The oldest posted receive that no message has taken, with at least `needed` usable bytes, or all of it if it is shorter; nullopt: none. A
  // plain stream then ends with a Terminate; so does an extended one unless none was posted (ReceivesExhausted), which makes the peer wait.
  virtual std::optional<ReceiveTarget> TakeReceive(uint64_t needed) = 0;
  // So many bytes of the receive that was taken last, at most its length, are needed: how many are usable now. Fewer: its memory is not as the
  // program said, and the stream ends as above.
  virtual uint64_t ExtendReceive(uint64_t needed) { return needed; }
  virtual bool ReceivesExhausted() const { return false; }  // after TakeReceive() found none: none was posted
  // A Send message is complete in the receive taken for it. Invalidation was done by Invalidate().
  virtual void Received(const ReceivedSend& message) = 0;
  // Send with Invalidate: makes `stag` unusable. An error ends the stream.
  virtual std::optional<AccessError> Invalidate(ddp::STag stag) = 0;

  // The next request to transmit, in posted order; nullptr: none. The stream calls Started() when it takes it.
  virtual Request* NextRequest() = 0;
  virtual void Started(Request& request) = 0;
  // Every byte of a Write or Send was handed to the lower layer (RFC 5040 section 6.1: the source may be reused); on a reliable
  // stream the peer has it.
  virtual void Sent(Request& request) = 0;
  // A Read's data are all in place, or what an atomic found.
  virtual void ReadDone(Request& request) = 0;

  // The program has unmapped the memory into which the oldest receive that was taken is being filled. The stream ends.
  virtual void ReceiveIsGone() {}
  // ... or that of this Read, or atomic, of ours: the stream takes nothing any more, and the host ends it.
  virtual void SinkIsGone(Request&) {}

  // Extended streams only.
  // Carries `operation` out on the eight bytes at `offset`, atomically towards everyone; what was there. It is their address that has to
  // be 64-bit aligned (kMisaligned, RFC 7306 section 8.2), whatever the offset is.
  virtual Result<uint64_t, AccessError> Atomic(ddp::STag, ddp::TaggedOffset, const AtomicOperation&) {
    return AccessError::kInvalidStag;
  }
  // A Write of the peer was refused that would have been followed by Immediate Data: the receive that is posted for those fails. The stream ends.
  virtual void WriteRefused() {}
  // The peer has no receive for `request`: it and everything started after it are to be given to the stream again (NextRequest) once
  // the host has called Stream::Resume(), `timer` later (the code of min_rnr_timer in ibv_modify_qp(3)).
  virtual void ReceiverNotReady(Request& request, uint8_t timer) {}
  // Targeted streams: what is asked next, of TakeReceive(), Invalidate(), Atomic() and of remote memory, concerns target `number`. False:
  // there is no such target.
  virtual bool SelectTarget(uint32_t number) { return false; }
};

}  // namespace weft::rdmap

#endif  // RDMAP_HOST_H_
