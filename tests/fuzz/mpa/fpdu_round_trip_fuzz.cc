// FpduSender against the reference encoder, and FpduReceiver behind it, under any order of appends and partial writes.
//
// Input: options (1 byte), then operations of 4 bytes each: append (with lengths, pieces, volatile or not) or write.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "base/check.h"
#include "mpa/fpdu_receiver.h"
#include "mpa/fpdu_sender.h"
#include "mpa/reference.h"

namespace weft::mpa {
namespace {

void Run(ByteSpan input) {
  if (input.empty()) return;
  const bool crc = input[0] & 1, markers = input[0] & 2;
  static BufferPool pool;
  FpduSender sender({.crc = crc, .markers = markers, .max_ulpdu = input[0] & 4 ? 64768u : 1442u}, pool);
  RecordingSink sink;
  FpduReceiver receiver({.crc = crc, .markers = markers}, pool, sink);
  Bytes wire, expected;
  std::vector<Bytes> sent;
  std::deque<Bytes> memory;

  auto write = [&](size_t count) {
    Bytes out;
    for (const iovec& piece : sender.Pending()) {
      const size_t part = std::min(piece.iov_len, count - out.size());
      const uint8_t* from = static_cast<const uint8_t*>(piece.iov_base);
      out.insert(out.end(), from, from + part);
    }
    sender.Consume(out.size());
    wire.insert(wire.end(), out.begin(), out.end());
    WEFT_CHECK(sender.consumed() == wire.size());
    WEFT_CHECK(Feed(receiver, out));
  };

  for (size_t at = 1; at + 4 <= input.size() && expected.size() < 60000; at += 4) {
    const size_t value = input[at + 1] << 8 | input[at + 2];
    if (input[at] & 1) {
      write(input[at] & 2 ? value * 8 : value % 300);
      continue;
    }
    const size_t header_length = 1 + input[at + 3] % llp::kUlpduHeadLength;
    const size_t payload_length = (input[at] & 2 ? value : value % 700) % (sender.max_ulpdu() - header_length + 1);
    const size_t pieces = 1 + (input[at] >> 4) * 3;
    const bool is_volatile = input[at] & 4;
    if (!sender.HasRoom(payload_length, pieces)) {
      WEFT_CHECK(!sender.empty());
      continue;
    }
    Bytes ulpdu(header_length + payload_length);
    for (size_t i = 0; i < ulpdu.size(); ++i) ulpdu[i] = static_cast<uint8_t>(input[at + 3] + i * 11);
    memory.emplace_back(ulpdu.begin() + static_cast<long>(header_length), ulpdu.end());
    std::vector<iovec> payload;
    for (size_t i = 0, done = 0; i < pieces; ++i) {
      const size_t length = i + 1 == pieces ? payload_length - done : payload_length / pieces;
      payload.push_back({memory.back().data() + done, length});
      done += length;
    }
    sender.Append(ByteSpan(ulpdu).first(header_length), payload, is_volatile);
    if (is_volatile) std::fill(memory.back().begin(), memory.back().end(), 0xdd);
    ReferenceEncode(expected, ulpdu, crc, markers);
    sent.push_back(std::move(ulpdu));
    WEFT_CHECK(sender.appended() == expected.size());
    WEFT_CHECK(sender.Pending().size() <= FpduSender::kMaxPieces);
  }
  write(~size_t{0});
  WEFT_CHECK(sender.empty());
  WEFT_CHECK(wire == expected);
  WEFT_CHECK(sink.ulpdus() == sent);
  WEFT_CHECK(receiver.at_boundary());
}

}  // namespace
}  // namespace weft::mpa

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::mpa::Run({data, size});
  return 0;
}
