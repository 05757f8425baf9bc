#ifndef RDMAP_TERMINATE_H_
#define RDMAP_TERMINATE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/byte_reader.h"

namespace weft::rdmap {

// RFC 5040 section 4.8: the layer whose error ended a stream.
enum class TerminateLayer : uint8_t { kRdmap = 0, kDdp = 1, kLlp = 2 };

struct TerminateMessage {
  TerminateLayer layer = TerminateLayer::kRdmap;
  uint8_t error_type = 0;  // 4 bits
  uint8_t error_code = 0;  // 8 bits
  // The parts of the message that its header control bits announce: length and header of the offending DDP segment, and
  // the RDMAP header of a failed RDMA Read Request.
  std::optional<uint16_t> ddp_segment_length;
  std::array<uint8_t, 18> ddp_header{};
  uint8_t ddp_header_length = 0;  // 0 (absent), 14 (tagged) or 18 (untagged)
  std::array<uint8_t, 28> read_header{};
  bool has_read_header = false;

  static constexpr size_t kMaxLength = 4 + 2 + 18 + 28;
  // nullopt: shorter than its control bits announce.
  static std::optional<TerminateMessage> Parse(ByteSpan payload);
  size_t Serialize(MutableByteSpan storage) const;  // returns the length; storage of kMaxLength is enough
  // "RDMAP remote protection error: base or bounds violation (layer 0 type 1 code 0x01)"
  std::string ToString() const;
};

}  // namespace weft::rdmap

#endif  // RDMAP_TERMINATE_H_
