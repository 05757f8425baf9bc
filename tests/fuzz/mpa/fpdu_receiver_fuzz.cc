// FpduReceiver against the reference parser, with every option, over any cut of the stream.
//
// Input: options (1 byte), limit of the ULPDU length (1), cuts (2), then the stream. With bit 0x10 of the options what
// follows is not the stream but a recipe for a valid one (lengths and a place to damage), so that deep states are
// reached.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "base/check.h"
#include "mpa/fpdu_receiver.h"
#include "mpa/reference.h"

namespace weft::mpa {
namespace {

Bytes FromRecipe(ByteSpan recipe, bool crc, bool markers) {
  Bytes stream;
  size_t at = 0;
  while (at + 4 <= recipe.size() && stream.size() < 20000) {
    const size_t scale = recipe[at] & 3;  // most are short
    const size_t length = 1 + (scale == 3   ? recipe[at + 1] * 257 + recipe[at + 2]
                               : scale == 2 ? recipe[at + 1] * 8
                                            : recipe[at + 1]) %
                                  65535;
    Bytes ulpdu(length);
    for (size_t i = 0; i < length; ++i) ulpdu[i] = static_cast<uint8_t>(recipe[at + 3] + i * 7);
    const size_t start = stream.size();
    ReferenceEncode(stream, ulpdu, crc, markers);
    if ((recipe[at] & 0xf0) == 0xf0) stream[start + (recipe[at + 2] * 53u) % (stream.size() - start)] ^= recipe[at] | 1;
    at += 4;
  }
  return stream;
}

void Run(ByteSpan input) {
  if (input.size() < 4) return;
  const uint8_t flags = input[0];
  const FpduReceiver::Options options = {
      .crc = (flags & 1) != 0, .markers = (flags & 2) != 0, .max_ulpdu = input[1] == 0 ? 65535u : 1 + input[1] * 256u};
  uint32_t cuts = static_cast<uint32_t>(input[2] << 8 | input[3]) * 2654435761u + 1;
  const ByteSpan rest = input.subspan(4);
  const Bytes stream = flags & 0x10 ? FromRecipe(rest, options.crc, options.markers) : Bytes(rest.begin(), rest.end());

  static BufferPool pool;
  RecordingSink sink;
  sink.set_max_pieces(1 + (flags >> 5) * 20);
  FpduReceiver receiver(options, pool, sink);
  bool more = true;
  for (size_t at = 0; at < stream.size() && more;) {
    cuts = cuts * 1664525 + 1013904223;
    const size_t most = cuts & 0x80000000 ? 100000 : cuts & 0x40000000 ? 1500 : 20;
    const size_t step = std::min(stream.size() - at, (cuts >> 8) % most);
    more = Feed(receiver, ByteSpan(stream).subspan(at, step));
    at += step;
  }

  const ReferenceDecoded expected = ReferenceDecode(stream, options);
  WEFT_CHECK(receiver.error() == expected.error);
  WEFT_CHECK(more == (expected.error == FpduError::kNone));
  WEFT_CHECK(sink.ulpdus() == expected.ulpdus);
  if (more) WEFT_CHECK(receiver.at_boundary() == expected.at_boundary);
  WEFT_CHECK(!sink.between() || (!options.crc && !options.markers));
}

}  // namespace
}  // namespace weft::mpa

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::mpa::Run({data, size});
  return 0;
}
