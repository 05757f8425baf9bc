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
// Of a revision 2 frame, at the front of its private data.
inline constexpr size_t kIrdOrdLength = llp::ReadWords::kLength;

using llp::kIrdOrdMask, llp::kIrdOrdNotNegotiated, llp::kPeerToPeerBit, llp::kRtrReadBit, llp::kRtrSendBit, llp::kRtrWriteBit;
using llp::WeftTrailer;

enum class StartError : uint8_t {
  kNone,
  kBadKey,       // not an MPA Request / Reply
  kBadRevision,  // neither 1 nor 2, or not the one that we asked for
  kPrivateDataTooLong,
  kTruncatedIrdOrd,  // revision 2, but the private data is too short for the IRD/ORD words
  kRejected,         // Initiator: the responder rejected; its private data is in the outcome
  kClosed,           // the stream ended before the frame was complete
  kIrdOrdRefused,    // the responder's ORD exceeds what we support (RFC 6581 section 9)
  kNoCommonRtr,      // the reply selects none of the RTR kinds that we offered (RFC 6581 section 9.2)
};
const char* ToString(StartError error);

// What an end requests.
struct StartParams {
  uint8_t revision = 2;
  bool crc = true;       // C: we want CRCs
  bool markers = false;  // M: we want to receive markers
  uint16_t ird = 0;      // RDMA Reads we can take at once, 0 to 0x3ffe
  uint16_t ord = 0;      // RDMA Reads we want to have outstanding
  // Initiator: asks for peer-to-peer mode with these RTR kinds (Send is our last choice).
  bool peer_to_peer = false;
  bool rtr_send = true, rtr_write = true, rtr_read = true;
  std::vector<uint8_t> private_data;  // the program's (and Weft's trailer), without the IRD/ORD words
};

// What both ends agreed on, as seen from this end.
struct StartOutcome {
  uint8_t revision = 1;
  bool crc = true;                    // FPDUs carry CRCs, which are checked (either side asked)
  bool send_markers = false;          // the peer asked us for markers
  bool receive_markers = false;       // we asked the peer for markers
  bool has_ird_ord = false;           // false with revision 1, which has no IRD and ORD
  uint16_t ird = 0, ord = 0;          // ours, reduced to what the peer supports
  llp::Rtr rtr = llp::Rtr::kNone;     // what the initiator must send first, and the responder receives first
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

  // `bytes` may be a prefix of the stream. nullopt: more bytes are needed (NeededBytes tells how many in all). A frame
  // that cannot become valid is rejected at the first byte that shows it.
  static Result<std::optional<StartFrame>, StartError> Parse(ByteSpan bytes, bool expect_reply);
  // Length of the whole frame, as far as `bytes` can tell.
  static size_t NeededBytes(ByteSpan bytes);
  // At most kMaxPrivateData bytes of private data, the IRD/ORD words included.
  std::vector<uint8_t> Serialize() const;
  std::string ToString() const;
};

// Collects exactly one start frame from a stream and not a byte more (FPDUs may follow it).
class StartFrameCollector {
 public:
  explicit StartFrameCollector(bool expect_reply) : expect_reply_(expect_reply) {}
  // Where to read next and how much at most; empty when the frame is complete or bad.
  MutableByteSpan PrepareRead();
  // Returns kNone if there is no error.
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

// Maximum length of the private data in bytes, Weft's trailer included, of a frame with IRD/ORD words (revision 2) or
// without.
inline size_t PrivateDataRoom(bool enhanced) { return kMaxPrivateData - (enhanced ? kIrdOrdLength : 0); }

// Initiator: the request to send, then the outcome of the reply (`kRejected` with the peer's private data in
// `outcome`).
StartFrame MakeRequest(const StartParams& ours);
StartError OnReply(const StartParams& ours, const StartFrame& reply, StartOutcome* outcome);

// Responder: the content of the request (private data, and the peer's IRD/ORD as our ord/ird limits,
// kIrdOrdNotNegotiated for none); then the reply and the outcome of accepting it with `ours`, or the reply that rejects
// it. The reply is enhanced exactly if the request is enhanced and `ours.revision` is 2.
StartOutcome DescribeRequest(const StartFrame& request);
StartFrame MakeReply(const StartFrame& request, const StartParams& ours, StartOutcome* outcome);
StartFrame MakeReject(const StartFrame& request, ByteSpan private_data);

}  // namespace weft::mpa

#endif  // MPA_START_UP_H_
