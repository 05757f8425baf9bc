#include "rdmap/atomic.h"

#include "base/byte_writer.h"

namespace weft::rdmap {

std::optional<AtomicRequestHeader> AtomicRequestHeader::Parse(ByteSpan bytes) {
  if (bytes.size() < kLength) return std::nullopt;
  ByteReader reader(bytes);
  AtomicRequestHeader header;
  const uint32_t code = reader.U32() & 0xf;
  if (code != static_cast<uint32_t>(AtomicCode::kFetchAdd) && code != static_cast<uint32_t>(AtomicCode::kCompareSwap)) {
    return std::nullopt;
  }
  header.operation.code = static_cast<AtomicCode>(code);
  header.identifier = reader.U32();
  header.stag = ddp::STag(reader.U32());
  header.offset = ddp::TaggedOffset(reader.U64());
  header.operation.add_or_swap = reader.U64();
  header.operation.add_or_swap_mask = reader.U64();
  header.operation.compare = reader.U64();
  header.operation.compare_mask = reader.U64();
  return header;
}

size_t AtomicRequestHeader::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage.first(kLength));
  writer.U32(static_cast<uint32_t>(operation.code));
  writer.U32(identifier);
  writer.U32(stag.value);
  writer.U64(offset.value);
  writer.U64(operation.add_or_swap);
  writer.U64(operation.add_or_swap_mask);
  writer.U64(operation.compare);
  writer.U64(operation.compare_mask);
  return kLength;
}

std::optional<AtomicResponseHeader> AtomicResponseHeader::Parse(ByteSpan bytes) {
  if (bytes.size() < kLength) return std::nullopt;
  ByteReader reader(bytes);
  AtomicResponseHeader header;
  header.identifier = reader.U32();
  header.original = reader.U64();
  return header;
}

size_t AtomicResponseHeader::Serialize(MutableByteSpan storage) const {
  ByteWriter writer(storage.first(kLength));
  writer.U32(identifier);
  writer.U64(original);
  return kLength;
}

}  // namespace weft::rdmap
