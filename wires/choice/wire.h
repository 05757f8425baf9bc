#ifndef WIRES_CHOICE_WIRE_H_
#define WIRES_CHOICE_WIRE_H_

#include <memory>

#include "base/buffer_pool.h"
#include "base/settings.h"
#include "llp/handshake.h"
#include "transport/network.h"

namespace weft {

// The wire that WEFT_LLP selects: MPA over `network`'s byte streams, the process's SCTP, or both. All arguments outlive
// it and what it makes.
std::unique_ptr<llp::Wire> MakeWire(transport::Network& network, BufferPool& pool, const Settings& settings);

}  // namespace weft

#endif  // WIRES_CHOICE_WIRE_H_
