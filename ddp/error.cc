#include "ddp/error.h"

namespace weft::ddp {

const char* ErrorTypeName(uint8_t type) {
  switch (type) {
    case 0:
      return "local catastrophic error";
    case 1:
      return "tagged buffer error";
    case 2:
      return "untagged buffer error";
  }
  return nullptr;
}

const char* ErrorCodeName(uint8_t type, uint8_t code) {
  switch (static_cast<Error>(type << 8 | code)) {
    case Error::kLocalCatastrophic:
      return nullptr;  // the type says it all
    case Error::kInvalidStag:
      return "invalid STag";
    case Error::kBaseOrBounds:
      return "base or bounds violation";
    case Error::kStagNotAssociated:
      return "STag not associated with the stream";
    case Error::kOffsetWrap:
      return "TO wrap";
    case Error::kTaggedInvalidVersion:
    case Error::kUntaggedInvalidVersion:
      return "invalid DDP version";
    case Error::kInvalidQueue:
      return "invalid queue number";
    case Error::kNoBuffer:
      return "invalid MSN, no buffer available";
    case Error::kMsnRange:
      return "invalid MSN, out of range";
    case Error::kInvalidMessageOffset:
      return "invalid MO";
    case Error::kMessageTooLong:
      return "message too long for the available buffer";
  }
  return nullptr;
}

}  // namespace weft::ddp
