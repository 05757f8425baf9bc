// Requests and replies of service ID resolution: any bytes. What is taken is written back the same.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "sim/cm/sidr/message.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto message = weft::sim::SidrMessage::Parse({data, size});
  if (!message) return 0;
  WEFT_CHECK(!message->ToString().empty());
  const std::vector<uint8_t> bytes = message->Serialize();
  WEFT_CHECK(std::equal(bytes.begin(), bytes.end(), data, data + size));
  return 0;
}
