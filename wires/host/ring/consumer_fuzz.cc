// The reader of a ring against a producer that writes anything.
//
// Input: records one behind the other, each: how its stamp is (1 byte; mostly right), kind (1), length (4), pieces (1), header (1), claim (1),
// how many lines it takes (1), then as many bytes as these say. The ring is full of what came before.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <algorithm>
#include <memory>

#include "base/byte_reader.h"
#include "base/check.h"
#include "wires/host/ring/consumer.h"

namespace weft::host {
namespace {

constexpr uint64_t kSecret = 0x9182736455463728u;

struct alignas(kLine) Memory {
  RingWords words{};
  uint8_t bytes[kRingBytes]{};
};

void WriteRecord(Memory& memory, uint64_t line, ByteReader& input) {
  uint8_t* const at = memory.bytes + line % kRingLines * kLine;
  auto& head = *reinterpret_cast<RecordHead*>(at);
  head.stamp = input.U8() < 0xf0 ? StampOf(kSecret, line) : StampOf(kSecret, line) + 1;
  head.kind = input.U8() % 8;
  head.length = input.U32();
  if (head.length & 0x80000000) head.length %= 70000;
  head.pieces = input.U8();
  head.header = input.U8();
  const size_t room = kRingBytes - static_cast<size_t>(at - memory.bytes) - sizeof head;
  if (room < 8) return;
  const uint32_t claim = input.U8() % 5;
  std::memcpy(at + sizeof head, &claim, sizeof claim);
  const ByteSpan rest = input.Bytes(std::min<size_t>({input.remaining(), room - 8, 64}));
  std::memcpy(at + sizeof head + 8, rest.data(), rest.size());
}

void Run(ByteSpan bytes) {
  const auto memory = std::make_unique<Memory>();
  Consumer consumer(memory->words, memory->bytes, kSecret);
  ByteReader input(bytes);
  uint64_t line = 0;
  for (int i = 0; i < 2000 && input.remaining() > 12; ++i) {
    WriteRecord(*memory, line, input);
    Consumer::Record record;
    const Consumer::Look look = consumer.Next(&record);
    if (look != Consumer::Look::kRecord) return;
    if (record.kind == Kind::kUlpdu) {
      WEFT_CHECK(record.length > 0 && record.length <= kMostUlpdu && record.bytes.size() == record.length);
      WEFT_CHECK(record.bytes.data() > memory->bytes && record.bytes.data() + record.length <= memory->bytes + kRingBytes);
    } else if (record.kind == Kind::kReference) {
      WEFT_CHECK(record.pieces > 0 && record.pieces <= kMostPieces && record.header_length <= kHeaderRoom);
      size_t total = record.header_length;
      for (size_t j = 0; j < record.pieces; ++j) total += record.payload[j].length;
      WEFT_CHECK(total == record.length && record.length <= kMostUlpdu);
    } else if (record.kind == Kind::kPlaced) {
      WEFT_CHECK(record.header_length > 0 && record.header_length <= kHeaderRoom && record.header_length < record.length);
      WEFT_CHECK(record.length <= kMostUlpdu);
    }
    const uint64_t before = consumer.unpublished();
    consumer.Consume(record);
    WEFT_CHECK(consumer.unpublished() > before);
    line += consumer.unpublished() - before;
    consumer.Publish();
    line = memory->words.tail;
  }
}

}  // namespace
}  // namespace weft::host

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::host::Run({data, size});
  return 0;
}
