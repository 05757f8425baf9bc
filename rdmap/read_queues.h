#ifndef RDMAP_READ_QUEUES_H_
#define RDMAP_READ_QUEUES_H_

#include <cstdint>

#include "ddp/types.h"
#include "rdmap/atomic.h"
#include "rdmap/fixed_ring.h"
#include "rdmap/read_request.h"
#include "rdmap/request.h"

namespace weft::rdmap {

// An RDMA Read Request of the peer, until its response is completely appended; or an Atomic Request, which is carried
// out when it arrives.
struct InboundRead {
  ReadRequestHeader header;
  ddp::Msn msn;
  bool is_atomic = false;
  uint32_t target = 0;  // targeted streams
  AtomicResponseHeader atomic;
};

// An RDMA Read or Atomic Request of ours, until its response is in place.
struct OutstandingRead {
  Request* request = nullptr;  // nullptr: the zero-length Read that is our RTR
  uint32_t received = 0;       // bytes
};

// The two directions of RDMA Reads (RFC 5040 section 5.2) and atomics, both answered in the order of the requests.
struct ReadQueues {
  FixedRing<InboundRead> inbound;
  FixedRing<OutstandingRead> outstanding;
};

}  // namespace weft::rdmap

#endif  // RDMAP_READ_QUEUES_H_
