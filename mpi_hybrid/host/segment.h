#ifndef MPI_HYBRID_HOST_SEGMENT_H_
#define MPI_HYBRID_HOST_SEGMENT_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/host/affinity_table.h"
#include "mpi_hybrid/host/bell.h"
#include "mpi_hybrid/host/layout.h"
#include "mpi_hybrid/host/mapping.h"
#include "mpi_hybrid/host/process.h"

namespace weft::mpi::host {

// The memory that the ranks of MPI_COMM_WORLD on one host share, mapped by each rank that could join. It is a memfd
// whose size is sealed against shrinking, so that an access to the mapping never faults. Each process has a place in
// it.
//
// The other processes are known to belong to the job (gathering.h); they are trusted no further. Values read here may
// be invalid and may change between two reads.
//
// Settle, Leave, WillSleep and IsAwake need the library's lock. Any thread may call the other functions.
class Segment {
 public:
  // For the processes `ranks` (of MPI_COMM_WORLD, ascending) on this host; this one is at `place`. Create is for the
  // first of them, which makes the memory. Null and `why`: there is no segment.
  static std::unique_ptr<Segment> Create(std::span<const int> ranks, int place, std::string* why);
  // For the other processes, which map it. `memory` came from another process: its seals and its size are checked.
  static std::unique_ptr<Segment> Join(Descriptor memory, std::span<const int> ranks, int place, std::string* why);
  ~Segment();  // leaves
  Segment(const Segment&) = delete;
  Segment& operator=(const Segment&) = delete;

  // --- membership ---
  // Called when all processes have had the time to join. From then on it is known which ones did; all of them have the
  // same result.
  void Settle();
  int places() const { return static_cast<int>(ranks_.size()); }
  int place() const { return place_; }
  ProcessId IdAt(int place) const { return ranks_[static_cast<size_t>(place)]; }
  // nullopt: `process` is not in the segment or has not joined (another host, another namespace, no memory, ...). The
  // answer is the same at all processes that have joined.
  std::optional<int> PlaceOf(ProcessId process) const;
  bool has_company() const { return company_; }  // another process joined
  // Whether the process at `place`, which has joined, still exists and has not left. Asks the kernel. A forked child of
  // that process does not count.
  bool IsPresent(int place) const;
  // Its process id as this process sees it, from the kernel; 0: it is not present.
  pid_t PidOf(int place) const;
  // That process, to be watched. Null: it is not present.
  std::shared_ptr<Process> ProcessAt(int place) const;
  // This process no longer receives anything through the segment.
  void Leave();
  // This process lives, and is lost to the others, because its words were overwritten. any_gave_up: one of all is.
  void GiveUp() { header().gave_up.fetch_add(1); }
  bool any_gave_up() const { return header().gave_up.load(std::memory_order_acquire) != 0; }
  // How many of the processes that joined may run on none of the processors on which this thread may run.
  int Elsewhere() const;

  // --- memory ---
  // kCardBytes, kPlaceBytes or kPairBytes, aligned to a page.
  uint8_t* CardOf(int place) const;
  uint8_t* OfPlace(int place) const;
  uint8_t* OfPair(int from, int to) const;

  // Allocates `bytes` of the segment, rounded up to pages of the kernel, that no other process uses and that are zero.
  // Returns the offset, which the caller tells the other processes so that they can map it. Pages take no memory until
  // they are touched. nullopt: none is left (or another process overwrote the header).
  std::optional<uint64_t> Reserve(uint64_t bytes);
  // Maps a range, or a part of one that begins at a page of the kernel. No mapping, and errno: it is not a range, or
  // there is no address space.
  Mapping Map(uint64_t offset, uint64_t bytes) const;
  // Frees the memory of a range. Processes that still map it see zeros. Offsets are never allocated twice.
  void Discard(uint64_t offset, uint64_t bytes) const;

  // The descriptor of the memfd, for code that passes it on; this object keeps ownership.
  int memory_descriptor() const { return memory_.get(); }

  // --- waking ---
  // A process that is about to sleep calls WillSleep, checks once more whether there is something to do, and sleeps in
  // epoll with bell_fd() among its descriptors. A process that changes something which another may wait for makes the
  // change first and then calls Ring. Therefore at least one of the two sees the other.
  // Several sources of news may each call it before their last check. Only the first call sets the bit: a ring that came
  // between two of them has taken it, and a nap must see that.
  void WillSleep() {
    if (!std::exchange(armed_, true)) own().attention.fetch_or(Slot::kAsleep, std::memory_order_relaxed);
    // Pairs with Ring. The checks that follow may be loads with acquire only. On a weakly ordered processor such a load
    // could pass even a sequentially consistent store.
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  // A sleep that may come first, between WillSleep and epoll: in futex(2), for `most`, without the library's lock. A
  // process that rings then needs no datagram. True: the process was rung.
  bool Nap(std::chrono::milliseconds most);
  void EndNap() const;  // ends a nap as a ring does; any thread may call it
  void IsAwake();  // after each sleep; silences the bell
  void Silence() const { bell_.Silence(); }  // for a ring that came late
  int bell_fd() const { return bell_.fd(); }
  const Bell& bell() const { return bell_; }
  // Wakes the process at `place` if it sleeps; only then it makes a system call.
  void Ring(int place) const {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with WillSleep
    RingAfterFence(place);
  }
  // For a caller that made the change by a sequentially consistent operation, or that has executed such a fence after
  // it.
  void RingAfterFence(int place) const {
    if (SlotAt(place).attention.load(std::memory_order_seq_cst) & Slot::kAsleep) [[unlikely]]
      WakeUp(place);
  }
  // The attention word of a place, whose other bits belong to p2p/host.
  std::atomic<uint32_t>& attention_of(int place) const { return SlotAt(place).attention; }
  // The processor that it runs on, for Processors.
  std::atomic<uint32_t>& processor_of(int place) const { return SlotAt(place).processor; }

 private:
  Segment(std::span<const int> ranks, int place) : ranks_(ranks.begin(), ranks.end()), place_(place) {}

  bool Attach(std::string* why);
  bool TakePlace(std::string* why);
  void WakeUp(int place) const;
  AffinityTable affinities() const {
    return AffinityTable({reinterpret_cast<Affinity*>(fixed_.data() + AffinitiesStart(ranks_.size())), ranks_.size()});
  }
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
  bool napped_ = false;  // and was woken: the bell did not ring
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_SEGMENT_H_
