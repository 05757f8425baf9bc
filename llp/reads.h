#ifndef LLP_READS_H_
#define LLP_READS_H_

#include <cstddef>
#include <cstdint>

#include "llp/stream.h"

// Negotiation of RDMA Reads and of the first message, by two words at the front of the private data (RFC 6581 section
// 9). The same over MPA and over SCTP.
namespace weft::llp {

// Each word is a 14-bit count below two control bits.
inline constexpr uint16_t kIrdOrdMask = 0x3fff;
inline constexpr uint16_t kIrdOrdNotNegotiated = 0x3fff;  // "automatic negotiation is not desired"
inline constexpr uint16_t kPeerToPeerBit = 0x8000;        // A, of the IRD word
inline constexpr uint16_t kRtrSendBit = 0x4000;           // B, of the IRD word
inline constexpr uint16_t kRtrWriteBit = 0x8000;          // C, of the ORD word
inline constexpr uint16_t kRtrReadBit = 0x4000;           // D, of the ORD word

struct ReadWords {
  static constexpr size_t kLength = 4;  // bytes of both on the wire
  uint16_t ird = 0, ord = 0;            // with their control bits: A|B|IRD, C|D|ORD
};

// What an end requests.
struct ReadParams {
  uint16_t ird = 0;  // RDMA Reads we can take at once, 0 to 0x3ffe
  uint16_t ord = 0;  // RDMA Reads we want to have outstanding
  // Initiator: asks for peer-to-peer mode with these RTR kinds. Responder: the kinds that it accepts; none set means
  // all.
  bool peer_to_peer = false;
  bool rtr_send = true, rtr_write = true, rtr_read = true;
};

enum class ReadsError : uint8_t {
  kNone,
  kIrdOrdRefused,  // the responder's ORD exceeds what we support (section 9.1)
  kNoCommonRtr,    // the reply selects none of the RTR kinds that we offered (section 9.2)
};

// Initiator: the words to send, then the outcome of the answer. If `rejected`, only IRD and ORD of the outcome are
// valid.
ReadWords AskForReads(const ReadParams& ours);
ReadsError OnReadsAnswer(const ReadParams& ours, const ReadWords& reply, bool rejected, Outcome* outcome);

// Responder: the content of a request (the peer's IRD and ORD as our limits, kIrdOrdNotNegotiated for none), then the
// words and the outcome of accepting it with `ours`, or the words that reject it.
Outcome DescribeReads(const ReadWords& request);
ReadWords AnswerReads(const ReadWords& request, const ReadParams& ours, Outcome* outcome);
ReadWords RejectReads(const ReadWords& request);

}  // namespace weft::llp

#endif  // LLP_READS_H_
