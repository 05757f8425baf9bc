#include "ddp/sctp/set_up_data.h"

#include "base/byte_writer.h"

namespace weft::ddp::sctp {

static_assert(kReadsLength == llp::ReadWords::kLength);

SetUpData SetUpData::Parse(ByteSpan private_data, bool has_reads, bool extensions) {
  SetUpData data;
  ByteReader reader(private_data);
  if (has_reads) {
    data.reads.emplace();
    data.reads->ird = reader.U16();
    data.reads->ord = reader.U16();
  }
  const ByteSpan rest = reader.Rest();
  data.program.assign(rest.begin(), rest.end());
  if (extensions) data.trailer = llp::WeftTrailer::TakeFrom(data.program);
  return data;
}

std::optional<std::vector<uint8_t>> SetUpData::Serialize() const {
  if (program.size() > Room(reads.has_value())) return std::nullopt;
  std::vector<uint8_t> bytes(reads ? kReadsLength : 0);
  if (reads) {
    ByteWriter writer(bytes);
    writer.U16(reads->ird);
    writer.U16(reads->ord);
  }
  bytes.insert(bytes.end(), program.begin(), program.end());
  if (trailer && bytes.size() + trailer->length() <= kMaxPrivateData) trailer->AppendTo(bytes);
  return bytes;
}

}  // namespace weft::ddp::sctp
