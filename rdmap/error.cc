#include "rdmap/error.h"

namespace weft::rdmap {

const char* ErrorTypeName(uint8_t type) {
  switch (type) {
    case 0:
      return "local catastrophic error";
    case 1:
      return "remote protection error";
    case 2:
      return "remote operation error";
  }
  return nullptr;
}

const char* ErrorCodeName(uint8_t type, uint8_t code) {
  switch (static_cast<Error>(type << 8 | code)) {
    case Error::kLocalCatastrophic:
      return nullptr;  // has no codes
    case Error::kInvalidStag:
      return "invalid STag";
    case Error::kBaseOrBounds:
      return "base or bounds violation";
    case Error::kAccessRights:
      return "access rights violation";
    case Error::kStagNotAssociated:
      return "STag not associated with the stream";
    case Error::kOffsetWrap:
      return "TO wrap";
    case Error::kCannotInvalidate:
    case Error::kOperationCannotInvalidate:
      return "STag cannot be invalidated";
    case Error::kUnspecifiedProtection:
    case Error::kUnspecifiedOperation:
      return "unspecified error";
    case Error::kInvalidVersion:
      return "invalid RDMAP version";
    case Error::kUnexpectedOpcode:
      return "unexpected opcode";
    case Error::kCatastrophicStream:
      return "catastrophic error, localized to the stream";
    case Error::kCatastrophicGlobal:
      return "catastrophic error, global";
  }
  return nullptr;
}

}  // namespace weft::rdmap
