#ifndef MPI_HYBRID_RMA_APPLY_H_
#define MPI_HYBRID_RMA_APPLY_H_

#include "mpi_hybrid/rma/mapped_memory.h"
#include "mpi_hybrid/rma/target_window.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// What became of a message. Malformed ones change nothing, nor do those that name memory outside the window; that is malformed
// too, but in dynamic windows, of which the origin cannot know the bounds, if a reply is wanted. kNotMapped: the program has unmapped memory of the window;
// nothing was changed. Only a caller that passes `mapped` hears of it.
enum class Applied : uint8_t { kDone, kOutOfRange, kMalformed, kNotMapped };

// kPut, kGet, kAccumulate and kGetAccumulate; `body` is what follows the header. What is fetched goes to `fetched`, which has
// room for DataRoom(1) bytes.
Applied ApplyData(const MessageHeader& header, ByteSpan body, const TargetWindow& window, uint8_t* fetched,
                  size_t* fetched_bytes, MappedMemory* mapped = nullptr);
Applied ApplyCompareAndSwap(const MessageHeader& header, ByteSpan body, const TargetWindow& window, uint8_t* fetched,
                            size_t* fetched_bytes);

// An accumulate on `count` elements, one extent apart, that lie within the window: memory = memory op given, and what was
// there before to `fetched`, each if not null. Excludes all others that go by the same guard.
void AccumulateElements(const AccumulateGuard& guard, MPI_Op op, const ElementType& type, const uint8_t* given,
                        uint8_t* memory, uint32_t count, uint8_t* fetched);
// The same where the caller excludes the others.
void AccumulateInTurn(const WholeTurn& turn, MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory,
                      uint32_t count, uint8_t* fetched);
void CompareAndSwapElement(const AccumulateGuard& guard, const ElementType& type, const uint8_t* compare,
                           const uint8_t* given, uint8_t* memory, uint8_t* fetched);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_APPLY_H_
