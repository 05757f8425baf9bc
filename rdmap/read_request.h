#ifndef RDMAP_READ_REQUEST_H_
#define RDMAP_READ_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "base/byte_reader.h"
#include "ddp/types.h"
#include "rdmap/opcode.h"

namespace weft::rdmap {

//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                     Data Sink STag (SinkSTag)                 |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                  Data Sink Tagged Offset (SinkTO)             |
// |                                                               |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                  RDMA Read Message Size (RDMARDSZ)            |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                     Data Source STag (SrcSTag)                |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                 Data Source Tagged Offset (SrcTO)             |
// |                                                               |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// RDMA Read Request Header, RFC 5040 section 4.4.
struct ReadRequestHeader {
  static constexpr size_t kLength = kReadRequestLength;

  ddp::STag sink_stag;
  ddp::TaggedOffset sink_offset;
  uint32_t length = 0;  // bytes
  ddp::STag source_stag;
  ddp::TaggedOffset source_offset;

  // nullopt: shorter than kLength. Ignores what follows.
  static std::optional<ReadRequestHeader> Parse(ByteSpan bytes);
  // Writes kLength bytes, and returns it.
  size_t Serialize(MutableByteSpan storage) const;
  std::string ToString() const;
};

}  // namespace weft::rdmap

#endif  // RDMAP_READ_REQUEST_H_
