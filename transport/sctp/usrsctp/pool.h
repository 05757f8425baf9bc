#ifndef TRANSPORT_SCTP_USRSCTP_POOL_H_
#define TRANSPORT_SCTP_USRSCTP_POOL_H_

#include <cstddef>

// Memory for usrsctp, instead of malloc() and free(), which take a sixth of the time of a transfer over loopback: for
// each 2 KiB of a message usrsctp allocates three pieces at each end. Freed memory is kept for it, at most kMostKept
// bytes. Not thread safe: only one thread at a time is inside usrsctp (Stack).
namespace weft::transport::sctp {

constexpr size_t kMostKept = 4 << 20;

// Aligned like malloc()'s; null: out of memory.
void* PoolAllocate(size_t bytes);
// `memory` comes from PoolAllocate(), or is null.
void PoolFree(void* memory);
// Bytes kept for reuse.
size_t PoolKept();

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_POOL_H_
