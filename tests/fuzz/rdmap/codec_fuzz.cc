// Every header parser of DDP and RDMAP: what parses is written back the same.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "ddp/header.h"
#include "rdmap/read_request.h"
#include "rdmap/terminate.h"

namespace weft {
namespace {

constexpr size_t kLongest = 64;

template <typename Header>
void CheckRoundTrip(ByteSpan input, const Header& header, uint8_t reserved_of_first_byte) {
  std::array<uint8_t, kLongest> written{};
  const size_t length = header.Serialize(written);
  WEFT_CHECK(length <= input.size());
  WEFT_CHECK((input[0] & ~reserved_of_first_byte) == written[0]);
  WEFT_CHECK(std::equal(written.begin() + 1, written.begin() + static_cast<ptrdiff_t>(length), input.begin() + 1));
  WEFT_CHECK(!header.ToString().empty());
}

void Check(ByteSpan input) {
  if (auto header = ddp::TaggedHeader::Parse(input)) CheckRoundTrip(input, *header, 0x3c);
  if (auto header = ddp::UntaggedHeader::Parse(input)) CheckRoundTrip(input, *header, 0x3c);
  if (auto header = rdmap::ReadRequestHeader::Parse(input)) CheckRoundTrip(input, *header, 0);
  if (auto message = rdmap::TerminateMessage::Parse(input)) {
    std::array<uint8_t, rdmap::TerminateMessage::kMaxLength> written{};
    const size_t length = message->Serialize(written);
    WEFT_CHECK(length <= input.size());
    const auto again = rdmap::TerminateMessage::Parse(ByteSpan(written).first(length));
    WEFT_CHECK(again && again->layer == message->layer && again->error_type == message->error_type &&
               again->error_code == message->error_code && again->ddp_header == message->ddp_header &&
               again->read_header == message->read_header && again->ddp_segment_length == message->ddp_segment_length);
    WEFT_CHECK(!message->ToString().empty());
  }
}

}  // namespace
}  // namespace weft

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::Check(weft::ByteSpan(data, size));
  return 0;
}
