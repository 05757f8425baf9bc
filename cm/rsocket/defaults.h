#ifndef CM_RSOCKET_DEFAULTS_H_
#define CM_RSOCKET_DEFAULTS_H_

#include <cstdint>
#include <string>

namespace weft::rsocket {

// The initial options of an rsocket: rsocket(7), the files in /etc/rdma/rsocket. A file that is missing or has no
// number changes nothing. A number that is out of range is moved into the range.
struct Defaults {
  uint32_t polling_us = 10;        // polling_time: microseconds to poll before waiting
  uint32_t receive_bytes = 1 << 17;  // mem_default
  uint32_t send_bytes = 1 << 17;     // wmem_default
  uint32_t send_queue = 384;       // sqsize_default
  uint32_t receive_queue = 384;    // rqsize_default
  uint32_t inline_bytes = 64;      // inline_default
  uint32_t map_entries = 0;        // iomap_size

  static Defaults Read(const std::string& directory);
  // The defaults of this host, read once.
  static const Defaults& Process();
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DEFAULTS_H_
