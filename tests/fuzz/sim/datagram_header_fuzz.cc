// Datagram headers: any bytes. What is taken is what it says, and is written back the same.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "sim/datagram/header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using weft::sim::DatagramHeader;
  const auto header = DatagramHeader::Parse({data, size});
  if (!header) return 0;
  WEFT_CHECK(size == DatagramHeader::kLength + header->length);
  WEFT_CHECK(!header->ToString().empty());
  uint8_t bytes[DatagramHeader::kLength];
  header->SerializeTo(bytes);
  WEFT_CHECK(std::memcmp(bytes, data, sizeof bytes) == 0);
  return 0;
}
