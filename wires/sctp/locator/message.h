#ifndef WIRES_SCTP_LOCATOR_MESSAGE_H_
#define WIRES_SCTP_LOCATOR_MESSAGE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/byte_reader.h"

namespace weft::sctp {

// How a process learns on which UDP port another process receives SCTP packets (RFC 6951 leaves this open). A question
// and an answer, one UDP datagram each, are sent to the UDP port with the number of the listener's SCTP port, and back;
// big-endian. An answer is as long as its question, so forged questions cannot amplify traffic.
//
//    0                   1                   2                   3
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//   +-------------------------------+---------------+---------------+
//   |         magic "WP"            |  version = 1  |     type      |
//   +-------------------------------+---------------+---------------+
//   |                      transaction, chosen                      |
//   |                       by the asker                            |
//   +-------------------------------+-------------------------------+
//   |           SCTP port           |  UDP port; 0 in a question    |
//   +-------------------------------+-------------------------------+
struct LocatorMessage {
  static constexpr size_t kLength = 16;
  enum class Type : uint8_t { kQuestion = 1, kAnswer = 2 };

  Type type = Type::kQuestion;
  uint64_t transaction = 0;
  uint16_t sctp_port = 0;  // not 0
  uint16_t udp_port = 0;   // answer: not 0

  // nullopt: another format.
  static std::optional<LocatorMessage> Parse(ByteSpan datagram);
  std::array<uint8_t, kLength> Serialize() const;
  bool operator==(const LocatorMessage&) const = default;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_LOCATOR_MESSAGE_H_
