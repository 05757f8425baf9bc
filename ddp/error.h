#ifndef DDP_ERROR_H_
#define DDP_ERROR_H_

#include <cstdint>

namespace weft::ddp {

// Errors that DDP finds in a received segment (RFC 5041 section 7). The value is the error number of section 7.2: the
// 4-bit Error Type in the upper byte, the 8-bit Error Code in the lower.
enum class Error : uint16_t {
  kLocalCatastrophic = 0x000,

  kInvalidStag = 0x100,
  kBaseOrBounds = 0x101,
  kStagNotAssociated = 0x102,
  kOffsetWrap = 0x103,
  kTaggedInvalidVersion = 0x104,

  kInvalidQueue = 0x201,
  kNoBuffer = 0x202,
  kMsnRange = 0x203,
  kInvalidMessageOffset = 0x204,
  kMessageTooLong = 0x205,
  kUntaggedInvalidVersion = 0x206,
};

constexpr uint8_t ErrorType(Error error) { return static_cast<uint16_t>(error) >> 8; }
constexpr uint8_t ErrorCode(Error error) { return static_cast<uint16_t>(error) & 0xff; }

// The RFC's names of an Error Type and of one of its codes; nullptr for numbers that the RFC does not define.
const char* ErrorTypeName(uint8_t type);
const char* ErrorCodeName(uint8_t type, uint8_t code);

}  // namespace weft::ddp

#endif  // DDP_ERROR_H_
