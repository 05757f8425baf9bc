// What stands in front of usrsctp looks at packets of anybody: it reads nothing behind them, and what it lets through fits.
//
// Input: an option byte (an association exists), then the packet.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "transport/sctp/usrsctp/guard.h"

namespace weft::transport::sctp {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kCommonHeader = 12;

// The chunks, one behind the other, are within the packet.
void CheckChunks(Bytes packet) {
  for (size_t at = kCommonHeader; at < packet.size();) {
    WEFT_CHECK(at + 4 <= packet.size());
    const size_t length = size_t{packet[at + 2]} << 8 | packet[at + 3];
    WEFT_CHECK(length >= 4 && at + length <= packet.size());
    at += (length + 3) & ~size_t{3};
  }
}

void Run(Bytes input) {
  if (input.empty()) return;
  // A copy of just that length, so that a sanitizer sees what is read behind it.
  const std::vector<uint8_t> packet(input.begin() + 1, input.end());
  if (!MayEnter(packet, (input[0] & 1) != 0)) return;
  CheckChunks(packet);
  if (const auto init = AsInit(packet)) {
    WEFT_CHECK(packet[kCommonHeader] == 1 && !CumulativeAck(packet));
  }
  if (CumulativeAck(packet)) WEFT_CHECK(packet[kCommonHeader] == 3);
}

}  // namespace
}  // namespace weft::transport::sctp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::transport::sctp::Run({data, size});
  return 0;
}
