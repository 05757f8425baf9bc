#ifndef SIM_CM_SIDR_MESSAGE_H_
#define SIM_CM_SIDR_MESSAGE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/byte_reader.h"

namespace weft::sim {

// How rdma_cm finds the queue pair behind a port of RDMA_PS_UDP: a request and a reply, one UDP datagram each, to the
// port of the listener and back; big-endian. They stand for InfiniBand's service ID resolution (IBTA volume 1 section
// 12.11), and use its status values.
//
//    0                   1                   2                   3
//    0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//   +-------------------------------+---------------+---------------+
//   |         magic "WS"            |  version = 1  |     type      |
//   +-------------------------------+---------------+---------------+
//   |                      transaction, chosen                      |
//   |                       by the requester                        |
//   +---------------+-----------------------------------------------+
//   |    status     |                     QPN                       |
//   +---------------+-----------------------------------------------+
//   |                            Q_Key                              |
//   +---------------------------------------------------------------+
//   |  private data length (0..255), then the private data ...      |
//   +-------------------------------+-------------------------------+
struct SidrMessage {
  static constexpr size_t kHeaderLength = 22;
  static constexpr size_t kMostPrivateData = 255;
  static constexpr size_t kLongest = kHeaderLength + kMostPrivateData;

  enum class Type : uint8_t {
    kRequest = 1,
    kReply = 2,
    kPending = 3,  // the request has arrived; the listener's program has not answered yet
  };
  // The SIDR status of ib_cm, which rdma_cm shows in RDMA_CM_EVENT_UNREACHABLE.
  static constexpr uint8_t kAccepted = 0;
  static constexpr uint8_t kUnsupported = 1;  // never sent: no program has the port
  static constexpr uint8_t kRejected = 2;

  Type type = Type::kRequest;
  uint64_t transaction = 0;
  uint8_t status = kAccepted;  // reply
  uint32_t number = 0;         // reply: QPN, 24 bits
  uint32_t qkey = 0;           // reply
  std::vector<uint8_t> private_data;

  // nullopt: another format.
  static std::optional<SidrMessage> Parse(ByteSpan datagram);
  std::vector<uint8_t> Serialize() const;
  std::string ToString() const;
  bool operator==(const SidrMessage&) const = default;
};

}  // namespace weft::sim

#endif  // SIM_CM_SIDR_MESSAGE_H_
