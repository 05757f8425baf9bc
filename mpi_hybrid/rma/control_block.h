#ifndef MPI_HYBRID_RMA_CONTROL_BLOCK_H_
#define MPI_HYBRID_RMA_CONTROL_BLOCK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/job_secret.h"

namespace weft::mpi::rma {

// What origins and a target share of a window at that target, so that its synchronisation needs nobody's help: in the
// target's segment where processes of its host map it, in its own memory otherwise.
//
//  | cookie | asleep | lock | accumulate lock | barrier | parcels | signals of rank 0 | rank 1 | ... | readers | waiting |
//
// Each part that several processes write at the same time has a cache line of its own. Other processes write here: what
// is read is a hint that is checked before it is an index, and never an address, or a length of memory: where a parcel is said to be a file is
// read. All of it is zero at first.
struct ControlHead {
  static constexpr uint32_t kPromised = uint32_t{1} << 31;

  Nonce cookie;  // by which a process that mapped it knows that it is this one
  // A thread of the target sleeps in MPI and is to be woken by its bell (bell.h). Pairs with each word below that it may wait for: it stores this and
  // looks at them, who changes them looks at this, a full fence or sequentially consistent operations at each side.
  alignas(64) std::atomic<uint32_t> asleep;
  // Of window_lock.h: rank + 1 of who has the lock alone, with kPromised who is to have it; how many wait. Pairs with `readers` and `waiting`:
  // each rank stores its own and looks at the others', all sequentially consistent.
  alignas(64) std::atomic<uint32_t> writer;
  std::atomic<uint32_t> waiters;
  // Of accumulate_turn.h: rank + 1 of who accumulates alone, and whether the target's service is in atomic operations. Pairs with `in_atomics`
  // in the same way. Given back with release, and the elements with it.
  alignas(64) std::atomic<uint32_t> accumulating;
  alignas(64) std::atomic<uint32_t> service_in_atomics;
  // At rank 0, of a fence of many: calls so far, and fences that all have come to. The calls collect what each rank wrote before, `passed`
  // publishes it to all: acquire and release at both.
  alignas(64) std::atomic<uint32_t> arrived;
  alignas(64) std::atomic<uint32_t> passed;
  // The last fence, by even and odd ones, at which a rank handed a parcel to the target, and the last one that the target has left: the parcels of
  // that are carried out. Release at who stores them, acquire at who looks.
  alignas(64) std::atomic<uint32_t> parcels[2];
  alignas(64) std::atomic<uint32_t> left;
};

// Of a rank towards the target.
struct alignas(64) Signals {
  // How often it did these, so far; modulo 2^32. They publish what the rank wrote before: release, and acquire at the target (Reached).
  std::atomic<uint32_t> fences, posts, completes;
  std::atomic<uint32_t> in_atomics;  // of accumulate_turn.h: 1 while it is in atomic operations
  // A parcel (parcel.h) that the rank has handed over with the end of the epoch that this names, and where it is in the host's segment; 0: the
  // target has carried it out. Stored last with release, loaded first with acquire, at both.
  std::atomic<uint64_t> parcel;
  std::atomic<uint64_t> parcel_offset, parcel_bytes;

  static constexpr uint64_t ParcelOfFence(uint32_t fence) { return uint64_t{1} << 32 | fence; }
  static constexpr uint64_t ParcelOfStart(uint32_t complete) { return uint64_t{2} << 32 | complete; }
};

// What one rank knows of its own Signals at a target.
struct SignalCounts {
  uint32_t fences = 0, posts = 0, completes = 0;
};

// Where the parts are. Refers to memory of Bytes(ranks) that starts at a cache line.
struct ControlBlock {
  ControlBlock() = default;
  ControlBlock(void* memory, int ranks);
  static size_t Bytes(int ranks);

  explicit operator bool() const { return head != nullptr; }

  ControlHead* head = nullptr;
  Signals* signals = nullptr;                 // by rank
  std::atomic<uint8_t>* readers = nullptr;    // by rank: shares the lock, or will unless somebody has it alone
  std::atomic<uint8_t>* waiting = nullptr;    // by rank: sleeps until the lock is given back, and how it wants it (window_lock.cc)
  int ranks = 0;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_CONTROL_BLOCK_H_
