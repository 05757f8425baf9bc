#ifndef CM_RSOCKET_DEFAULTS_H_
#define CM_RSOCKET_DEFAULTS_H_

#include <cstdint>
#include <string>

namespace weft::rsocket {

// What a new rsocket starts with: rsocket(7), the files of /etc/rdma/rsocket. A file that is missing, or holds no number, changes
// nothing; a number outside a value's range is moved into it.
struct Defaults {
  uint32_t polling_us = 10;        // polling_time: microseconds to poll before waiting
  uint32_t receive_bytes = 1 << 17;  // mem_default
  uint32_t send_bytes = 1 << 17;     // wmem_default
  uint32_t send_queue = 384;       // sqsize_default
  uint32_t receive_queue = 384;    // rqsize_default
  uint32_t inline_bytes = 64;      // inline_default
  uint32_t map_entries = 0;        // iomap_size

  static Defaults Read(const std::string& directory);
  // Those of this host, read once.
  static const Defaults& Process();
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_DEFAULTS_H_
