#ifndef TRANSPORT_SCTP_USRSCTP_HEADER_SIZES_H_
#define TRANSPORT_SCTP_USRSCTP_HEADER_SIZES_H_

#include <cstddef>
#include <cstdint>

// The headers in front of a packet's chunks, in bytes.
namespace weft::transport::sctp {

inline constexpr uint32_t kIp4Header = 20, kIp6Header = 40;  // without options
inline constexpr uint32_t kUdpHeader = 8;
inline constexpr size_t kCommonHeader = 12, kChecksumOffset = 8;  // RFC 9260 section 3.1

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_HEADER_SIZES_H_
