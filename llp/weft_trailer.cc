#include "llp/weft_trailer.h"

#include <algorithm>

#include "base/byte_writer.h"

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
// A later version keeps this layout and puts what it adds in front of it. With the flag kInvites there are in front of it the point of the
// invitation (8 bytes) and its nonce (16).
namespace weft::llp {
namespace {

constexpr uint64_t kMagic = 0x57656674524e4943;  // "WeftRNIC"
// The least MULPDU of RFC 5044, and less than RFC 5043's.
constexpr uint16_t kLeastMaxUlpdu = 128;

}  // namespace

void WeftTrailer::AppendTo(std::vector<uint8_t>& private_data) const {
  uint8_t storage[kInvitationLength + kLength];
  ByteWriter writer(storage);
  if (invitation) {
    writer.U64(invitation->point);
    writer.Bytes(invitation->nonce);
  }
  writer.U64(host_id);
  writer.U16(max_ulpdu);
  writer.U8(static_cast<uint8_t>(invitation ? flags | kInvites : flags & ~kInvites));
  writer.U8(version);
  writer.U64(kMagic);
  private_data.insert(private_data.end(), storage, storage + length());
}

std::optional<WeftTrailer> WeftTrailer::TakeFrom(std::vector<uint8_t>& private_data) {
  if (private_data.size() < kLength) return std::nullopt;
  ByteReader reader(ByteSpan(private_data).last(kLength));
  WeftTrailer trailer;
  trailer.host_id = reader.U64();
  // A peer that claims less than the RFCs' least must not make us cut messages into nothing.
  trailer.max_ulpdu = std::max(reader.U16(), kLeastMaxUlpdu);
  trailer.flags = reader.U8();
  trailer.version = reader.U8();
  if (reader.U64() != kMagic || trailer.version == 0) return std::nullopt;
  const bool invites = trailer.flags & kInvites;
  // Who says that there is an invitation and left no room for it did not write this.
  if (invites && private_data.size() < kLength + kInvitationLength) return std::nullopt;
  private_data.resize(private_data.size() - kLength);
  if (invites) {
    ByteReader before(ByteSpan(private_data).last(kInvitationLength));
    Invitation& invitation = trailer.invitation.emplace();
    invitation.point = before.U64();
    const ByteSpan nonce = before.Bytes(invitation.nonce.size());
    std::copy(nonce.begin(), nonce.end(), invitation.nonce.begin());
    private_data.resize(private_data.size() - kInvitationLength);
  }
  return trailer;
}

}  // namespace weft::llp
