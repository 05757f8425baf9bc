#ifndef SIM_CM_START_UP_TERMINATE_H_
#define SIM_CM_START_UP_TERMINATE_H_

#include <cstdint>
#include <vector>

#include "base/buffer_pool.h"
#include "mpa/start_up.h"

namespace weft::sim {

// The FPDU with which an initiator ends a connection whose MPA Reply it cannot take (RFC 6581 sections 8, 9.1 and 9.2): a Terminate of layer 2,
// type 0, and the code for `error`. It is the stream's first FPDU. Empty: no code is for that; the peer's frame was none at all.
std::vector<uint8_t> StartUpTerminate(mpa::StartError error, const mpa::StartOutcome& outcome, BufferPool& pool);

}  // namespace weft::sim

#endif  // SIM_CM_START_UP_TERMINATE_H_
