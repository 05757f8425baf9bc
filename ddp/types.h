#ifndef DDP_TYPES_H_
#define DDP_TYPES_H_

#include <cstdint>

#include "base/strong_id.h"

namespace weft::ddp {

// Steering tag (RFC 5040 section 1.2): names a tagged buffer. The verbs API calls it lkey and rkey.
using STag = StrongId<struct STagTag, uint32_t>;
// Tagged offset: a position in the tagged buffer, in bytes. For verbs regions it is a virtual address.
using TaggedOffset = StrongId<struct TaggedOffsetTag, uint64_t>;
// Message sequence number of an untagged queue; starts at 1 (RFC 5041 section 5.2), wraps.
using Msn = StrongId<struct MsnTag, uint32_t>;

}  // namespace weft::ddp

#endif  // DDP_TYPES_H_
