#ifndef MPA_START_UP_H_
#define MPA_START_UP_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"
#include "base/result.h"
#include "llp/reads.h"
#include "llp/stream.h"
#include "llp/weft_trailer.h"

// Connection set-up of MPA: RFC 5044 section 7 (revision 1) and RFC 6581 (revision 2). No I/O: bytes in, bytes out.
namespace weft::mpa {

inline constexpr size_t kStartFrameLength = 20;  // without private data
inline constexpr size_t kMaxPrivateData = 512;
inline constexpr size_t kIrdOrdLength = llp::ReadWords::kLength;  // of a revision 2 frame, at the front of its private data

using llp::kIrdOrdMask, llp::kIrdOrdNotNegotiated, llp::kPeerToPeerBit, llp::kRtrReadBit, llp::kRtrSendBit, llp::kRtrWriteBit;
using llp::WeftTrailer;

enum class StartError : uint8_t {
  kNone,
  kBadKey,       // not an MPA Request / Reply
  kBadRevision,  // neither 1 nor 2, or not what was asked for
  kPrivateDataTooLong,
  kTruncatedIrdOrd,  // revision 2 with less private data than the IRD/ORD words need
  kRejected,         // Initiator: the responder said no; private data are in the outcome
  kClosed,           // end of stream before the frame was complete
  kIrdOrdRefused,    // the responder's ORD exceeds what we can do (RFC 6581 section 9)
  kNoCommonRtr,      // the reply's RTR kinds are none of those that we offered (RFC 6581 section 9.2)
};
const char* ToString(StartError error);

// What an end wants.
struct StartParams {
  uint8_t revision = 2;
  bool crc = true;       // C: we want CRCs
  bool markers = false;  // M: we want to receive markers
  uint16_t ird = 0;      // RDMA Reads we can take at once, 0 to 0x3ffe
  uint16_t ord = 0;      // RDMA Reads we want to have outstanding
  // Initiator: peer-to-peer mode with these RTR kinds offered (in order of our preference Send is the last resort).
  bool peer_to_peer = false;
  bool rtr_send = true, rtr_write = true, rtr_read = true;
  std::vector<uint8_t> private_data;  // the program's (and Weft's trailer), without the IRD/ORD words
};

// What both ends agreed on, from our point of view.
struct StartOutcome {
  uint8_t revision = 1;
  bool crc = true;                    // FPDUs carry and check CRCs (either side asked)
  bool send_markers = false;          // the peer asked us for markers
  bool receive_markers = false;       // we asked
  bool has_ird_ord = false;           // false with revision 1: nothing was said
  uint16_t ird = 0, ord = 0;          // ours, reduced to what the peer can do
  llp::Rtr rtr = llp::Rtr::kNone;     // what the initiator must send / the responder will get first
  std::vector<uint8_t> private_data;  // the peer's, without the IRD/ORD words
};

// One MPA Request or Reply Frame, RFC 5044 section 7.1.1 and RFC 6581 section 6.
struct StartFrame {
  bool reply = false;
  bool markers = false, crc = false, rejected = false;
  bool enhanced = false;  // S: IRD/ORD words present
  uint8_t revision = 1;
  uint16_t ird_word = 0, ord_word = 0;  // the two words with their control bits (A|B|IRD, C|D|ORD)
  std::vector<uint8_t> private_data;    // without the words

  // `bytes` may be a prefix of the stream. nullopt: more bytes are needed (NeededBytes says how many in all).
  // A frame that cannot become valid is refused at the first byte that shows it.
  static Result<std::optional<StartFrame>, StartError> Parse(ByteSpan bytes, bool expect_reply);
  // How many bytes the frame has in all, as far as the `bytes` that are there tell.
  static size_t NeededBytes(ByteSpan bytes);
  // At most kMaxPrivateData bytes of private data, the IRD/ORD words included.
  std::vector<uint8_t> Serialize() const;
  std::string ToString() const;
};

// Collects exactly one start frame from a stream and not a byte more (FPDUs may be queued behind it).
class StartFrameCollector {
 public:
  explicit StartFrameCollector(bool expect_reply) : expect_reply_(expect_reply) {}
  // Where to read next and how much at most; empty when the frame is complete or bad.
  MutableByteSpan PrepareRead();
  // Returns kNone while all is well.
  StartError Commit(size_t count);
  bool complete() const { return frame_.has_value(); }
  const StartFrame& frame() const { return *frame_; }

 private:
  bool expect_reply_;
  std::array<uint8_t, kStartFrameLength + kMaxPrivateData> bytes_{};
  size_t have_ = 0;
  bool failed_ = false;
  std::optional<StartFrame> frame_;
};

// Most bytes of private data, Weft's trailer included, of a frame with IRD/ORD words (revision 2) or without.
inline size_t PrivateDataRoom(bool enhanced) { return kMaxPrivateData - (enhanced ? kIrdOrdLength : 0); }

// Initiator: the request to send, then the outcome from the reply (`kRejected` with the peer's private data in
// `outcome`).
StartFrame MakeRequest(const StartParams& ours);
StartError OnReply(const StartParams& ours, const StartFrame& reply, StartOutcome* outcome);

// Responder: what the request says (private data, the peer's IRD/ORD as our ord/ird limits, kIrdOrdNotNegotiated for
// none), then the reply and the outcome for accepting with `ours`, or the reply that rejects. The reply is enhanced
// exactly if the request is and `ours.revision` is 2.
StartOutcome DescribeRequest(const StartFrame& request);
StartFrame MakeReply(const StartFrame& request, const StartParams& ours, StartOutcome* outcome);
StartFrame MakeReject(const StartFrame& request, ByteSpan private_data);

}  // namespace weft::mpa

#endif  // MPA_START_UP_H_
