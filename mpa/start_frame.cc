#include <algorithm>
#include <cstdio>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "base/check.h"
#include "mpa/start_up.h"

// The start frames on the wire, RFC 5044 section 7.1.1 with the additions of RFC 6581 section 6 and 9:
//
//       0                   1                   2                   3
//       0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//   0  |                                                               |
//      ~   Key (16 bytes: "MPA ID Req Frame" or "MPA ID Rep Frame")    ~
//   12 |                                                               |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//   16 |M|C|R|S| Res   |     Rev       |          PD_Length            |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//   20 |A|B|        IRD                |C|D|        ORD                |  with S only
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//      ~                         Private Data                          ~
//
// PD_Length counts the IRD/ORD words as well.
namespace weft::mpa {
namespace {

constexpr size_t kKeyLength = 16;
constexpr char kRequestKey[] = "MPA ID Req Frame";
constexpr char kReplyKey[] = "MPA ID Rep Frame";

constexpr uint8_t kMarkersBit = 0x80;
constexpr uint8_t kCrcBit = 0x40;
constexpr uint8_t kRejectBit = 0x20;
constexpr uint8_t kEnhancedBit = 0x10;

const uint8_t* Key(bool reply) { return reinterpret_cast<const uint8_t*>(reply ? kReplyKey : kRequestKey); }

size_t PrivateDataLength(ByteSpan header) { return static_cast<size_t>(header[18]) << 8 | header[19]; }

}  // namespace

const char* ToString(StartError error) {
  switch (error) {
    case StartError::kNone:
      return "none";
    case StartError::kBadKey:
      return "not an MPA start frame of the expected kind";
    case StartError::kBadRevision:
      return "MPA revision not supported, or not the one asked for";
    case StartError::kPrivateDataTooLong:
      return "more than 512 bytes of private data announced";
    case StartError::kTruncatedIrdOrd:
      return "enhanced frame without room for IRD and ORD";
    case StartError::kRejected:
      return "the peer rejected the connection";
    case StartError::kClosed:
      return "the stream ended within the start frame";
    case StartError::kIrdOrdRefused:
      return "the peer's ORD is more than our IRD";
    case StartError::kNoCommonRtr:
      return "no ready-to-receive message that both ends support";
  }
  return "unknown";
}

size_t StartFrame::NeededBytes(ByteSpan bytes) {
  if (bytes.size() < kStartFrameLength) return kStartFrameLength;
  return kStartFrameLength + PrivateDataLength(bytes);
}

Result<std::optional<StartFrame>, StartError> StartFrame::Parse(ByteSpan bytes, bool expect_reply) {
  // A wrong key shows in a prefix: whoever speaks something else need not send 20 bytes to be told so. The other kind
  // of frame is wrong as well, which finds two initiators (section 7.1.2, rule 8).
  const ByteSpan key = bytes.first(std::min(bytes.size(), kKeyLength));
  if (!std::equal(key.begin(), key.end(), Key(expect_reply))) return StartError::kBadKey;
  if (bytes.size() < kStartFrameLength) return std::optional<StartFrame>();

  ByteReader reader(bytes);
  reader.Bytes(kKeyLength);
  StartFrame frame;
  frame.reply = expect_reply;
  const uint8_t flags = reader.U8();
  frame.markers = flags & kMarkersBit;
  frame.crc = flags & kCrcBit;
  frame.rejected = expect_reply && (flags & kRejectBit);  // not checked in a request
  frame.revision = reader.U8();
  if (frame.revision != 1 && frame.revision != 2) return StartError::kBadRevision;
  // In revision 1 the bit is one of the reserved ones, "not checked on reception".
  frame.enhanced = frame.revision >= 2 && (flags & kEnhancedBit);
  size_t length = reader.U16();
  if (length > kMaxPrivateData) return StartError::kPrivateDataTooLong;
  if (frame.enhanced && length < kIrdOrdLength) return StartError::kTruncatedIrdOrd;
  if (reader.remaining() < length) return std::optional<StartFrame>();
  if (frame.enhanced) {
    frame.ird_word = reader.U16();
    frame.ord_word = reader.U16();
    length -= kIrdOrdLength;
  }
  const ByteSpan private_data = reader.Bytes(length);
  frame.private_data.assign(private_data.begin(), private_data.end());
  return std::optional<StartFrame>(std::move(frame));
}

std::vector<uint8_t> StartFrame::Serialize() const {
  WEFT_CHECK(!enhanced || revision >= 2);
  const size_t length = private_data.size() + (enhanced ? kIrdOrdLength : 0);
  WEFT_CHECK(length <= kMaxPrivateData);
  std::vector<uint8_t> bytes(kStartFrameLength + length);
  ByteWriter writer(bytes);
  writer.Bytes({Key(reply), kKeyLength});
  writer.U8(static_cast<uint8_t>((markers ? kMarkersBit : 0) | (crc ? kCrcBit : 0) | (rejected ? kRejectBit : 0) |
                                 (enhanced ? kEnhancedBit : 0)));
  writer.U8(revision);
  writer.U16(static_cast<uint16_t>(length));
  if (enhanced) {
    writer.U16(ird_word);
    writer.U16(ord_word);
  }
  writer.Bytes(private_data);
  return bytes;
}

std::string StartFrame::ToString() const {
  char text[160];
  int used = std::snprintf(text, sizeof(text), "MPA %s rev %u%s%s%s, %zu bytes of private data",
                           reply ? "reply" : "request", revision, markers ? " markers" : "", crc ? " crc" : "",
                           rejected ? " rejected" : "", private_data.size());
  if (enhanced) {
    std::snprintf(text + used, sizeof(text) - static_cast<size_t>(used), ", IRD %u ORD %u%s%s%s%s",
                  ird_word & kIrdOrdMask, ord_word & kIrdOrdMask, ird_word & kPeerToPeerBit ? " peer-to-peer" : "",
                  ird_word & kRtrSendBit ? " rtr-send" : "", ord_word & kRtrWriteBit ? " rtr-write" : "",
                  ord_word & kRtrReadBit ? " rtr-read" : "");
  }
  return text;
}

MutableByteSpan StartFrameCollector::PrepareRead() {
  if (frame_ || failed_) return {};
  const size_t needed = StartFrame::NeededBytes({bytes_.data(), have_});
  return MutableByteSpan(bytes_).subspan(have_, needed - have_);
}

StartError StartFrameCollector::Commit(size_t count) {
  WEFT_CHECK(count <= PrepareRead().size());
  have_ += count;
  Result<std::optional<StartFrame>, StartError> parsed = StartFrame::Parse({bytes_.data(), have_}, expect_reply_);
  if (!parsed.ok()) {
    failed_ = true;
    return parsed.error();
  }
  frame_ = std::move(parsed).value();
  return StartError::kNone;
}

}  // namespace weft::mpa
