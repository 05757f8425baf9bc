#ifndef TOOLS_WEFT_SELF_TEST_H_
#define TOOLS_WEFT_SELF_TEST_H_

#include <string>

#include "tools/weft/libraries.h"

namespace weft::tool {

// Listens on 127.0.0.1 by rdma_cm, connects to it from this process, and disconnects. Returns an empty text on success,
// otherwise the step that failed and the reason. Takes at most 5 seconds.
std::string LoopbackSelfTest(const Library& librdmacm);

}  // namespace weft::tool

#endif  // TOOLS_WEFT_SELF_TEST_H_
