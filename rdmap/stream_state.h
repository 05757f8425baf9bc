#ifndef RDMAP_STREAM_STATE_H_
#define RDMAP_STREAM_STATE_H_

#include <cstdint>

namespace weft::rdmap {

enum class StreamState : uint8_t {
  kOperational,
  kTerminating,  // we are sending or have sent a Terminate: nothing more is received; close after it is sent
  kTerminated,   // the peer's Terminate arrived: nothing more is sent
};

}  // namespace weft::rdmap

#endif  // RDMAP_STREAM_STATE_H_
