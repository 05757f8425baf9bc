#include <algorithm>

#include "base/byte_reader.h"
#include "base/byte_writer.h"
#include "mpa/fpdu_layout.h"
#include "mpa/start_up.h"

// At the very end of the private data, after the program's own:
//
//       0                   1                   2                   3
//       0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//   0  |                                                               |
//      +                            Host id                            +
//   4  |                                                               |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//   8  |           Max ULPDU           |     Flags     |    Version    |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//   12 |                                                               |
//      +              Magic (8 bytes containing "WeftRNIC")            +
//   16 |                                                               |
//      +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//
// A later version keeps this layout and puts what it adds in front of it.
namespace weft::mpa {
namespace {

constexpr uint64_t kMagic = 0x57656674524e4943;  // "WeftRNIC"

}  // namespace

void WeftTrailer::AppendTo(std::vector<uint8_t>& private_data) const {
  uint8_t storage[kLength];
  ByteWriter writer(storage);
  writer.U64(host_id);
  writer.U16(max_ulpdu);
  writer.U8(flags);
  writer.U8(version);
  writer.U64(kMagic);
  private_data.insert(private_data.end(), storage, storage + kLength);
}

std::optional<WeftTrailer> WeftTrailer::TakeFrom(std::vector<uint8_t>& private_data) {
  if (private_data.size() < kLength) return std::nullopt;
  ByteReader reader(ByteSpan(private_data).last(kLength));
  WeftTrailer trailer;
  trailer.host_id = reader.U64();
  // A peer that claims less than the RFC's least MULPDU must not make us cut messages into nothing.
  trailer.max_ulpdu = std::max<uint16_t>(reader.U16(), kMinMulpdu);
  trailer.flags = reader.U8();
  trailer.version = reader.U8();
  if (reader.U64() != kMagic || trailer.version == 0) return std::nullopt;
  private_data.resize(private_data.size() - kLength);
  return trailer;
}

}  // namespace weft::mpa
