#ifndef RDMAP_ERROR_H_
#define RDMAP_ERROR_H_

#include <cstdint>

namespace weft::rdmap {

// Errors that RDMAP finds (RFC 5040 section 4.8, figure 9). The value has the 4-bit Error Type in the upper byte, and
// the 8-bit Error Code in the lower.
enum class Error : uint16_t {
  kLocalCatastrophic = 0x000,

  // Remote protection errors: RDMA Read Requests and Sends with Invalidate.
  kInvalidStag = 0x100,
  kBaseOrBounds = 0x101,
  kAccessRights = 0x102,
  kStagNotAssociated = 0x103,
  kOffsetWrap = 0x104,
  kCannotInvalidate = 0x109,
  kUnspecifiedProtection = 0x1ff,

  // Remote operation errors: any message.
  kInvalidVersion = 0x205,
  kUnexpectedOpcode = 0x206,
  kCatastrophicStream = 0x207,
  kCatastrophicGlobal = 0x208,
  kOperationCannotInvalidate = 0x209,
  kUnspecifiedOperation = 0x2ff,
};

constexpr uint8_t ErrorType(Error error) { return static_cast<uint16_t>(error) >> 8; }
constexpr uint8_t ErrorCode(Error error) { return static_cast<uint16_t>(error) & 0xff; }

// The RFC's names; nullptr for numbers that the RFC does not define, and for the codes of a type that has none.
const char* ErrorTypeName(uint8_t type);
const char* ErrorCodeName(uint8_t type, uint8_t code);

}  // namespace weft::rdmap

#endif  // RDMAP_ERROR_H_
