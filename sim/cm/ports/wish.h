#ifndef SIM_CM_PORTS_WISH_H_
#define SIM_CM_PORTS_WISH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "sim/queue_pair/peer.h"

namespace weft::sim {

inline constexpr uint32_t kMostSequence = 0xffffff;  // maximum of a packet sequence number

// The request of a queue pair that opens a connection: the private data of the request.
//
//  0                   1                   2                   3
//  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
// |                       Magic ("WeftQPCN")                      |
// |                                                               |
// |                      Destination queue pair                   |
// |                        Source queue pair                      |
// |    Service    |     Source's receive sequence number (rq_psn)  |
// |      Zero     |      Source's send sequence number (sq_psn)   |
// +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
struct Wish {
  static constexpr size_t kLength = 24;

  uint32_t to = 0, from = 0;
  Service service = Service::kReliable;  // of the source
  uint32_t receive_number = 0, send_number = 0;

  std::vector<uint8_t> Serialize() const;
  // nullopt: another format.
  static std::optional<Wish> Parse(ByteSpan bytes);

  bool operator==(const Wish&) const = default;
};

}  // namespace weft::sim

#endif  // SIM_CM_PORTS_WISH_H_
