#ifndef TRANSPORT_SCTP_USRSCTP_GUARD_H_
#define TRANSPORT_SCTP_USRSCTP_GUARD_H_

#include <cstdint>
#include <optional>
#include <span>

namespace weft::transport::sctp {

// Whether a packet of SCTP, from its common header on, may be given to usrsctp 0.9.5. An INIT has no verification tag
// to check, so any host can send one. In usrsctp, a parameter without length in an INIT causes an endless loop, and an
// INIT with a value that is not allowed ends an existing association. So what RFC 9260 calls malformed is dropped here:
// chunks and parameters that do not fit (sections 3.2 and 3.2.1), and an INIT or INIT ACK that is not alone or has
// values out of range (3.3.2, 3.3.3).
//
// `has_association`: an association with the packet's addresses and ports exists. An INIT that restarts it must then
// have no parameters of AUTH (RFC 4895): Weft does not use AUTH, and usrsctp may end the association because of them.
bool MayEnter(std::span<const uint8_t> packet, bool has_association);

// The contents of an INIT that MayEnter() accepts.
struct InitPacket {
  uint32_t tag = 0;                    // verification tag of packets to its sender
  std::optional<uint32_t> adaptation;  // RFC 5061 section 4.2.6; nullopt: absent
};
std::optional<InitPacket> AsInit(std::span<const uint8_t> packet);
// The cumulative TSN of a packet that begins with a SACK.
std::optional<uint32_t> CumulativeAck(std::span<const uint8_t> packet);

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_GUARD_H_
