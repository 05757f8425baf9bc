#ifndef TRANSPORT_SCTP_USRSCTP_POOL_H_
#define TRANSPORT_SCTP_USRSCTP_POOL_H_

#include <cstddef>

// Where usrsctp's memory comes from, in place of malloc() and free(), which cost a sixth of a transfer over loopback: of
// each 2 KiB of a message it wants three pieces of memory at each end. What it gives back is kept for it, at most
// kMostKept bytes. Not thread safe: whoever is inside usrsctp is alone (Stack).
namespace weft::transport::sctp {

constexpr size_t kMostKept = 4 << 20;

// Aligned as malloc() does; null: there is none.
void* PoolAllocate(size_t bytes);
// `memory` is of PoolAllocate(), or null.
void PoolFree(void* memory);
// Bytes that wait to be used again.
size_t PoolKept();

}  // namespace weft::transport::sctp

#endif  // TRANSPORT_SCTP_USRSCTP_POOL_H_
