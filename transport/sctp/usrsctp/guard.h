#ifndef TRANSPORT_SCTP_USRSCTP_GUARD_H_
#define TRANSPORT_SCTP_USRSCTP_GUARD_H_

#include <cstdint>
#include <optional>
#include <span>

namespace weft::transport::sctp {

// Whether a packet of SCTP, from its common header on, may be given to usrsctp 0.9.5. It knows no verification tag of
// an INIT, so that anybody may send one, and there it goes round for ever over a parameter without length, and ends the
// association that exists over an INIT with a value that is not allowed. So what RFC 9260 calls malformed is dropped
// here: chunks and parameters that do not fit (sections 3.2 and 3.2.1), an INIT or INIT ACK that is not alone or has
// values out of range (3.3.2, 3.3.3).
//
// `has_association`: one with the packet's addresses and ports exists. An INIT that is to restart it then bears nothing
// of AUTH (RFC 4895), which nobody here speaks, and which usrsctp would end the association over if it dislikes it.
bool MayEnter(std::span<const uint8_t> packet, bool has_association);

// What a packet that may enter says if it is an INIT.
struct InitPacket {
  uint32_t tag = 0;                    // which packets to its sender bear
  std::optional<uint32_t> adaptation;  // RFC 5061 section 4.2.6; nullopt: it bears none
};
std::optional<InitPacket> AsInit(std::span<const uint8_t> packet);
// The cumulative TSN of one that begins with a SACK.
std::optional<uint32_t> CumulativeAck(std::span<const uint8_t> packet);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_GUARD_H_
