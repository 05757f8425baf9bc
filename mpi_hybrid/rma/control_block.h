#ifndef MPI_HYBRID_RMA_CONTROL_BLOCK_H_
#define MPI_HYBRID_RMA_CONTROL_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/job_secret.h"

namespace weft::mpi::rma {

// State of a window at one target that origins and target share, so that synchronization needs no help from the
// target's program. It is in the target's segment if processes of its host map that, else in its own memory.
//
//  | cookie | asleep | lock | accumulate lock | barrier | parcels | signals of rank 0 | rank 1 | ... | readers | waiting |
//
// Each part that several processes write concurrently has a cache line of its own. Since other processes write here, a
// value is only a hint: it is checked before it is used as an index, and it is never used as an address or as a length
// of memory. (A parcel, which has an offset and a length, is read from a file.) All of it is zero at first.
struct ControlHead {
  static constexpr uint32_t kPromised = uint32_t{1} << 31;

  Nonce cookie;  // proves to a process that has mapped it that it is the right one
  // A thread of the target sleeps in MPI and must be woken by its bell (bell.h). Pairs with each word below that the
  // thread may wait for. The thread stores this word and then checks those; a process that changes one of them then
  // checks this word. Each side has a full fence or uses sequentially consistent operations.
  alignas(64) std::atomic<uint32_t> asleep;
  // For window_lock.h. `writer`: rank + 1 of the exclusive holder, or, with kPromised, of the rank that gets it next.
  // `waiters`: the number of waiting ranks. Pairs with `readers` and `waiting`: each rank stores its own word and then
  // checks the others', all sequentially consistent.
  alignas(64) std::atomic<uint32_t> writer;
  std::atomic<uint32_t> waiters;
  // For accumulate_turn.h. `accumulating`: rank + 1 of the rank that accumulates alone. `service_in_atomics`: whether
  // the target's service uses atomic operations. Pairs with `in_atomics` in the same way. It is released with release
  // order, which publishes the elements.
  alignas(64) std::atomic<uint32_t> accumulating;
  alignas(64) std::atomic<uint32_t> service_in_atomics;
  // At rank 0, for a fence of many ranks: the number of calls so far, and of fences that all ranks have reached. The
  // calls collect what each rank wrote before; `passed` publishes that to all. Both use acquire and release.
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> passed;
  // `parcels`: the last fence, one word for even and one for odd fences, at which a rank handed a parcel to the target.
  // `left`: the last fence that the target has left; its parcels have been carried out. Stored with release, loaded
  // with acquire.
  alignas(64) std::atomic<uint32_t> parcels[2];
  alignas(64) std::atomic<uint32_t> left;
};

// Signals of one rank to the target.
struct alignas(64) Signals {
  // How often the rank has done these so far, modulo 2^32. They publish what the rank wrote before: stored with
  // release, loaded by the target with acquire (Reached).
  std::atomic<uint32_t> fences, posts, completes;
  std::atomic<uint32_t> in_atomics;  // for accumulate_turn.h: 1 while the rank uses atomic operations
  // A parcel (parcel.h) that the rank has handed over at the end of the epoch named here, and its place in the host's
  // segment. 0: the target has carried it out. Both processes store it last with release and load it first with
  // acquire.
  std::atomic<uint64_t> parcel;
  std::atomic<uint64_t> parcel_offset, parcel_bytes;

  static constexpr uint64_t ParcelOfFence(uint32_t fence) { return uint64_t{1} << 32 | fence; }
  static constexpr uint64_t ParcelOfStart(uint32_t complete) { return uint64_t{2} << 32 | complete; }
};

// The values of this rank's own Signals at a target, as this rank knows them.
struct SignalCounts {
  uint32_t fences = 0, posts = 0, completes = 0;
};

// Pointers to the parts. They refer to Bytes(ranks) bytes of memory that start at a cache line.
struct ControlBlock {
  ControlBlock() = default;
  ControlBlock(void* memory, int ranks);
  static size_t Bytes(int ranks);

  explicit operator bool() const { return head != nullptr; }

  ControlHead* head = nullptr;
  Signals* signals = nullptr;                 // by rank
  std::atomic<uint8_t>* readers = nullptr;    // by rank: shares the lock, or will unless a rank holds it exclusively
  // by rank: sleeps until the lock is released, and in which mode it wants it (window_lock.cc)
  std::atomic<uint8_t>* waiting = nullptr;
  int ranks = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_CONTROL_BLOCK_H_
