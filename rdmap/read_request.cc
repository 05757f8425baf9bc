#include "rdmap/read_request.h"

#include <cinttypes>
#include <cstdio>

#include "base/byte_writer.h"

namespace weft::rdmap {

std::optional<ReadRequestHeader> ReadRequestHeader::Parse(ByteSpan bytes) {
  if (bytes.size() < kLength) return std::nullopt;
  ByteReader reader(bytes);
  ReadRequestHeader header;
  header.sink_stag = ddp::STag(reader.U32());
  header.sink_offset = ddp::TaggedOffset(reader.U64());
  header.length = reader.U32();
  header.source_stag = ddp::STag(reader.U32());
  header.source_offset = ddp::TaggedOffset(reader.U64());
  return header;
}

size_t ReadRequestHeader::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage);
  writer.U32(sink_stag.value);
  writer.U64(sink_offset.value);
  writer.U32(length);
  writer.U32(source_stag.value);
  writer.U64(source_offset.value);
  return writer.size();
}

std::string ReadRequestHeader::ToString() const {
  char text[160];
  std::snprintf(text, sizeof text,
                "read %" PRIu32 " bytes from STag 0x%08" PRIx32 " TO 0x%" PRIx64 " into STag 0x%08" PRIx32
                " TO 0x%" PRIx64,
                length, source_stag.value, source_offset.value, sink_stag.value, sink_offset.value);
  return text;
}

}  // namespace weft::rdmap
