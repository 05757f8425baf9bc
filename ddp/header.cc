#include "ddp/header.h"

#include <cinttypes>
#include <cstdio>
#include <optional>

#include "base/byte_writer.h"

namespace weft::ddp {
namespace {

// The checks that both models share; `length` is the header's.
std::optional<HeaderError> CheckControl(ByteSpan bytes, bool tagged, size_t length) {
  if (bytes.empty()) return HeaderError::kTruncated;
  const ControlField control = ControlField::Parse(bytes[0]);
  if (control.version != kVersion) return HeaderError::kBadVersion;
  if (control.tagged != tagged) return HeaderError::kOtherModel;
  if (bytes.size() < length) return HeaderError::kTruncated;
  return std::nullopt;
}

}  // namespace

Result<TaggedHeader, HeaderError> TaggedHeader::Parse(ByteSpan bytes) {
  if (auto error = CheckControl(bytes, /*tagged=*/true, kLength)) return *error;
  ByteReader reader(bytes.first(kLength));
  TaggedHeader header;
  header.last = ControlField::Parse(reader.U8()).last;
  header.rsvd_ulp = reader.U8();
  header.stag = STag(reader.U32());
  header.offset = TaggedOffset(reader.U64());
  return header;
}

size_t TaggedHeader::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage);
  writer.U8(ControlField{true, last}.Serialize());
  writer.U8(rsvd_ulp);
  writer.U32(stag.value);
  writer.U64(offset.value);
  return writer.size();
}

std::string TaggedHeader::ToString() const {
  char text[96];
  std::snprintf(text, sizeof text, "tagged%s ulp 0x%02x STag 0x%08" PRIx32 " TO 0x%" PRIx64, last ? " last" : "",
                rsvd_ulp, stag.value, offset.value);
  return text;
}

Result<UntaggedHeader, HeaderError> UntaggedHeader::Parse(ByteSpan bytes) {
  if (auto error = CheckControl(bytes, /*tagged=*/false, kLength)) return *error;
  ByteReader reader(bytes.first(kLength));
  UntaggedHeader header;
  header.last = ControlField::Parse(reader.U8()).last;
  header.rsvd_ulp = reader.U8();
  header.rsvd_ulp_word = reader.U32();
  header.queue = reader.U32();
  header.msn = Msn(reader.U32());
  header.message_offset = reader.U32();
  return header;
}

size_t UntaggedHeader::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage);
  writer.U8(ControlField{false, last}.Serialize());
  writer.U8(rsvd_ulp);
  writer.U32(rsvd_ulp_word);
  writer.U32(queue);
  writer.U32(msn.value);
  writer.U32(message_offset);
  return writer.size();
}

std::string UntaggedHeader::ToString() const {
  char text[128];
  std::snprintf(text, sizeof text, "untagged%s ulp 0x%02x 0x%08" PRIx32 " QN %" PRIu32 " MSN %" PRIu32 " MO %" PRIu32,
                last ? " last" : "", rsvd_ulp, rsvd_ulp_word, queue, msn.value, message_offset);
  return text;
}

}  // namespace weft::ddp
