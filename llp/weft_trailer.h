#ifndef LLP_WEFT_TRAILER_H_
#define LLP_WEFT_TRAILER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"

namespace weft::llp {

// Where the initiator of a connection can be met on its own host, and by what it knows the one whom it told (wires/host/meeting).
struct Invitation {
  uint64_t point = 0;
  std::array<uint8_t, 16> nonce{};
};

// What Weft adds after the program's private data, so that two Weft ends recognise each other: over TCP larger FPDUs,
// and CRC off on one host. A foreign responder's program sees these bytes behind its own; the responder adds it only if
// the request had it.
struct WeftTrailer {
  static constexpr size_t kLength = 20;
  static constexpr size_t kInvitationLength = 24;  // in front of the rest, in a request that has one
  uint8_t version = 1;
  uint16_t max_ulpdu = 65535;  // the longest ULPDU that this end takes
  // Unknown bits are ignored.
  static constexpr uint8_t kReliable = 1;  // rdmap/delivery.h: both ends have to say so
  static constexpr uint8_t kUnreliable = 2;
  static constexpr uint8_t kInvites = 4;  // there is an invitation
  static constexpr uint8_t kCame = 8;     // of an answer: the invitation was followed
  static constexpr uint8_t kOptionRefused = 16;  // of a rejection: rdma_reject_ece
  uint8_t flags = 0;
  uint64_t host_id = 0;  // equal on both ends: same host
  std::optional<Invitation> invitation;

  size_t length() const { return kLength + (invitation ? kInvitationLength : 0); }

  void AppendTo(std::vector<uint8_t>& private_data) const;  // caller checks the room
  // Removes the trailer from the end of `private_data` when one is there.
  static std::optional<WeftTrailer> TakeFrom(std::vector<uint8_t>& private_data);
};

}  // namespace weft::llp

#endif  // LLP_WEFT_TRAILER_H_
