#ifndef MPI_HYBRID_SHM_NODE_SEGMENT_H_
#define MPI_HYBRID_SHM_NODE_SEGMENT_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mpi_hybrid/core/descriptor.h"
#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/shm/bell.h"
#include "mpi_hybrid/shm/layout.h"

namespace weft::mpi::shm {

// Memory of this process for as long as it lives, or none.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* address, size_t bytes) : address_(static_cast<uint8_t*>(address)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();

  explicit operator bool() const { return address_ != nullptr; }
  uint8_t* data() const { return address_; }
  size_t size() const { return bytes_; }

 private:
  uint8_t* address_ = nullptr;
  size_t bytes_ = 0;
};

// The memory that the ranks of MPI_COMM_WORLD on one host have in common, mapped by each that could join: a memfd that
// nobody can shrink, so that no access to what is mapped ever faults. Each process has a place in it.
//
// Others of the job are trusted not to be strangers (gathering.h), no more: what is read here may be nonsense, and may
// change between two looks.
//
// Settle, Leave, WillSleep and IsAwake under the library's lock, the rest from any thread.
class NodeSegment {
 public:
  // For the processes `ranks` (of MPI_COMM_WORLD, ascending) on this host, of which this is the one at `place`. The
  // first makes the memory ... Null and `why`: there is none.
  static std::unique_ptr<NodeSegment> Create(std::span<const int> ranks, int place, std::string* why);
  // ... and the others map it. `memory` came from another process: its seals and its size are checked.
  static std::unique_ptr<NodeSegment> Join(Descriptor memory, std::span<const int> ranks, int place, std::string* why);
  ~NodeSegment();  // leaves
  NodeSegment(const NodeSegment&) = delete;
  NodeSegment& operator=(const NodeSegment&) = delete;

  // --- who is in it ---
  // All had the time to join: from now on it is known who did, the same at all of them.
  void Settle();
  int places() const { return static_cast<int>(ranks_.size()); }
  int place() const { return place_; }
  ProcessId ProcessAt(int place) const { return ranks_[static_cast<size_t>(place)]; }
  // nullopt: `process` is not in it, or has not joined (another host, another namespace, no memory ...). All that have
  // joined answer alike.
  std::optional<int> PlaceOf(ProcessId process) const;
  bool has_company() const { return company_; }  // somebody else joined
  // Whether the process of that place, which joined, is still there: it has neither died nor left. Asks the kernel. A
  // forked child of it does not count.
  bool IsPresent(int place) const;
  // Its process id here, as the kernel says; 0: it is not present.
  pid_t PidOf(int place) const;
  // This process takes nothing from the segment any more.
  void Leave();

  // --- memory ---
  // kAreaSizes[area].place or .pair bytes, aligned to a page.
  uint8_t* OfPlace(Area area, int place) const;
  uint8_t* OfPair(Area area, int from, int to) const;

  // `bytes` of the segment, rounded up to pages of the kernel, that nobody else has and that are zero: its offset, by which each of
  // the others can map it, to be told to them. Costs nothing until it is touched. nullopt: there is none (somebody
  // wrote nonsense).
  std::optional<uint64_t> Reserve(uint64_t bytes);
  // A range, or a part of one that begins at a page of the kernel. None and errno: it is none, or there is no address space for it.
  Mapping Map(uint64_t offset, uint64_t bytes) const;
  // Gives the memory of a range back; whoever still has it mapped sees zeros. Offsets are never given twice.
  void Discard(uint64_t offset, uint64_t bytes) const;

  // Of the memfd, for who hands it out; it stays this object's.
  int memory_descriptor() const { return memory_.fd(); }

  // --- waking ---
  // A process that is about to sleep says so, looks once more whether there is something to do, and sleeps in epoll with
  // bell_fd() among its descriptors. Who changes something that it may wait for changes it first, and rings then: one
  // of the two sees the other.
  void WillSleep() {
    armed_ = true;
    own().attention.fetch_or(Slot::kAsleep, std::memory_order_relaxed);
    // Pairs with Ring: what the caller looks at from here on may be read with acquire only, which would pass even a sequentially consistent
    // store on a weakly ordered processor.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void IsAwake();  // after each sleep: silences the bell
  void Silence() const { bell_.Silence(); }  // a ring that came late
  int bell_fd() const { return bell_.fd(); }
  // Wakes the process of that place if it sleeps. A system call only then.
  void Ring(int place) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with WillSleep
    RingAfterFence(place);
  }
  // For a caller that made the change by a sequentially consistent operation, or had such a fence behind it.
  void RingAfterFence(int place) const {
    if (SlotAt(place).attention.load(std::memory_order_seq_cst) & Slot::kAsleep) [[unlikely]]
      WakeUp(place);
  }
  // More bits of a place's attention than kAsleep, for who uses Area::kMessages.
  std::atomic<uint32_t>& attention_of(int place) const { return SlotAt(place).attention; }
  // Where it runs, for Processors.
  std::atomic<uint32_t>& processor_of(int place) const { return SlotAt(place).processor; }

 private:
  NodeSegment(std::span<const int> ranks, int place) : ranks_(ranks.begin(), ranks.end()), place_(place) {}

  bool Attach(std::string* why);
  bool TakePlace(std::string* why);
  void WakeUp(int place) const;
  Header& header() const { return *reinterpret_cast<Header*>(fixed_.data()); }
  Slot& SlotAt(int place) const {
    return *reinterpret_cast<Slot*>(fixed_.data() + kHeaderBytes + static_cast<size_t>(place) * sizeof(Slot));
  }
  Slot& own() const { return SlotAt(place_); }

  const std::vector<int> ranks_;
  const int place_;
  Descriptor memory_;
  Mapping fixed_;
  Bell bell_;
  std::vector<bool> joined_;  // by place; empty until Settle()
  bool company_ = false;
  bool has_place_ = false;
  bool armed_ = false;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_NODE_SEGMENT_H_
