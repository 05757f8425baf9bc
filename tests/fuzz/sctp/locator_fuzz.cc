// Messages of the locator: what parses is the same bytes again.
#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "wires/sctp/locator/message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (const auto message = weft::sctp::LocatorMessage::Parse({data, size})) {
    const auto bytes = message->Serialize();
    WEFT_CHECK(size == bytes.size() && std::equal(bytes.begin(), bytes.end(), data));
  }
  return 0;
}
