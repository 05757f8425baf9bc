#ifndef SIM_CM_START_UP_TERMINATE_H_
#define SIM_CM_START_UP_TERMINATE_H_

#include <cstdint>

#include "llp/ulpdu.h"

namespace weft::sim {

// Appends the last message to a peer whose answer the initiator cannot accept: a Terminate of layer 2, type 0, with the
// wire's `code` (RFC 6581 sections 8, 9.1 and 9.2). It is the first ULPDU of the stream.
void AppendStartUpTerminate(llp::UlpduWriter& writer, uint8_t code);

}  // namespace weft::sim

#endif  // SIM_CM_START_UP_TERMINATE_H_
