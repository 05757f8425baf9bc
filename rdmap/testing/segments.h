#ifndef RDMAP_TESTING_SEGMENTS_H_
#define RDMAP_TESTING_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/byte_reader.h"
#include "ddp/header.h"
#include "llp/ulpdu.h"
#include "rdmap/opcode.h"
#include "rdmap/read_request.h"

namespace weft::rdmap::testing {

using Bytes = std::vector<uint8_t>;

// DDP segments as a peer would send them.
Bytes Tagged(Opcode opcode, uint32_t stag, uint64_t offset, const Bytes& payload, bool last = true);
Bytes Untagged(Opcode opcode, uint32_t msn, uint32_t message_offset, const Bytes& payload, bool last = true);
Bytes ReadRequest(uint32_t msn, const ReadRequestHeader& header);

// Bytes 1, 2, 3 ... , a different pattern for each seed.
Bytes Pattern(size_t length, uint32_t seed = 0);

// Hands one segment to `sink` as MPA would, and copies its payload to where the sink says. Returns the result of Begin,
// or else of End. The head has its own allocation, so that ASan finds a read beyond it.
bool Deliver(llp::UlpduSink& sink, const Bytes& segment, uint8_t acknowledged = 0);

}  // namespace weft::rdmap::testing

#endif  // RDMAP_TESTING_SEGMENTS_H_
