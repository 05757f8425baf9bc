#ifndef LLP_WEFT_TRAILER_H_
#define LLP_WEFT_TRAILER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"

namespace weft::llp {

// Tells the responder where it can meet the initiator on their host, and gives the value by which the initiator
// recognises it (wires/host/meeting).
struct Invitation {
  uint64_t point = 0;
  std::array<uint8_t, 16> nonce{};
};

// What Weft appends to the program's private data so that two Weft ends recognise each other. Over TCP it allows larger
// FPDUs, and no CRC on one host. The program of a foreign responder sees these bytes after its own. The responder sends
// a trailer only if the request had one.
struct WeftTrailer {
  static constexpr size_t kLength = 20;
  // Length of the invitation, which precedes the rest in a request that has one.
  static constexpr size_t kInvitationLength = 24;
  uint8_t version = 1;
  uint16_t max_ulpdu = 65535;  // the longest ULPDU that this end accepts
  // Unknown bits are ignored.
  static constexpr uint8_t kReliable = 1;  // rdmap/delivery.h; both ends must set it
  static constexpr uint8_t kUnreliable = 2;
  static constexpr uint8_t kInvites = 4;  // there is an invitation
  static constexpr uint8_t kCame = 8;     // in an answer: the responder followed the invitation
  static constexpr uint8_t kOptionRefused = 16;  // in a rejection: rdma_reject_ece
  static constexpr uint8_t kAtomics = 32;        // atomics on a plain stream; both ends must set it
  uint8_t flags = 0;
  uint64_t host_id = 0;  // equal on both ends: same host
  std::optional<Invitation> invitation;

  size_t length() const { return kLength + (invitation ? kInvitationLength : 0); }

  void AppendTo(std::vector<uint8_t>& private_data) const;  // the caller checks that there is room
  // Removes the trailer from the end of `private_data` if there is one.
  static std::optional<WeftTrailer> TakeFrom(std::vector<uint8_t>& private_data);
};

}  // namespace weft::llp

#endif  // LLP_WEFT_TRAILER_H_
