#ifndef MPI_HYBRID_RMA_APPLY_H_
#define MPI_HYBRID_RMA_APPLY_H_

#include "mpi_hybrid/rma/mapped_memory.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// The outcome of a message. A malformed message changes nothing, nor does one that addresses memory outside of the
// window. The latter is malformed too, except in dynamic windows if a reply is wanted, because the origin cannot know
// their bounds. kNotMapped: the program has unmapped memory of the window, and nothing was changed. It is returned only
// if the caller passes `mapped`.
enum class Applied : uint8_t { kDone, kOutOfRange, kMalformed, kNotMapped };

// kPut, kGet, kAccumulate and kGetAccumulate. `body`: the bytes behind the header. Fetched data goes to `fetched`,
// which has space for DataRoom(1) bytes.
Applied ApplyData(const MessageHeader& header, ByteSpan body, const TargetWindow& window, uint8_t* fetched,
                  size_t* fetched_bytes, MappedMemory* mapped = nullptr);
Applied ApplyCompareAndSwap(const MessageHeader& header, ByteSpan body, const TargetWindow& window, uint8_t* fetched,
                            size_t* fetched_bytes);

// Whether so many elements are accumulated by a process alone, in place of atomic operations. Those that the RNIC works on never are: it takes no turn.
inline bool TakesWholeTurn(const AccumulateGuard& guard, const ElementType& type, uint64_t elements) {
  return elements >= guard.many() && !(guard.by_rnic && type.integral && type.size == sizeof(uint64_t));
}

// Accumulates on `count` elements, one extent apart, that are within the window: memory = memory op given. The previous
// values go to `fetched`. `given` and `fetched` may be null. Excludes all others that use the same guard.
void AccumulateElements(const AccumulateGuard& guard, MPI_Op op, const ElementType& type, const uint8_t* given,
                        uint8_t* memory, uint32_t count, uint8_t* fetched);
// The same if the caller already excludes the others.
void AccumulateInTurn(const WholeTurn& turn, MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory,
                      uint32_t count, uint8_t* fetched);
void CompareAndSwapElement(const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                           const uint8_t* given, uint8_t* memory, uint8_t* fetched);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_APPLY_H_
