#ifndef MPI_HYBRID_P2P_SHM_RING_H_
#define MPI_HYBRID_P2P_SHM_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mpi_hybrid/shm/layout.h"

namespace weft::mpi::shm {

// The bytes of one link in one direction: a page of the node segment that one process writes and one reads, as slots of
// one cache line each.
//
//  0               4           5       6       8                                48              56            64
//  +---------------+-----------+-------+-------+---------------------------------+---------------+-------------+
//  | number        | bytes     | kind  | 0     | the first bytes                 | where         | length      |
//  +---------------+-----------+-------+-------+---------------------------------+---------------+-------------+
//
// The number tells that the slot was written: slots are counted from 1, and one that has the number of a round before is
// still free. Bytes that do not fit follow from elsewhere: from a cell of the writer's (cells.h), or from its own memory,
// from which the reader copies with one system call. Without them there is room for more of the first bytes. Where the
// reader may not do that any more it refuses what is left: then these are the next bytes once more. What is offered is no part of the bytes:
// the reader may copy it at any time, until it says in a frame of its own that it has, or asks for it.
//
// Either side may write nonsense: what is read here is copied once, and the copy checked. A third process may write here, too: then only the
// owner of a word can tell (HasItsWords).
enum class BulkKind : uint8_t {
  kNone = 0,
  kCell = 1,    // `where` is the index of a cell
  kMemory = 2,  // `where` is an address in the writer's process
  kEnd = 3,     // nothing more will come
  kOffer = 4,   // the first bytes announce a message whose data are at the address `where` in the writer's process
};

constexpr bool Refers(BulkKind kind) { return kind == BulkKind::kCell || kind == BulkKind::kMemory || kind == BulkKind::kOffer; }

struct alignas(kLine) RingSlot {
  static constexpr size_t kInline = 56, kInlineBesideBulk = 40;
  static constexpr size_t kWhereAt = kInlineBesideBulk, kLengthAt = kWhereAt + sizeof(uint64_t);

  void SetBulk(uint64_t where, uint64_t length) {
    std::memcpy(bytes + kWhereAt, &where, sizeof(where));
    std::memcpy(bytes + kLengthAt, &length, sizeof(length));
  }

  std::atomic<uint64_t> control;  // publishes the bytes, the cell and the memory that it refers to: the reader loads it with acquire
  uint8_t bytes[kInline];
};
static_assert(sizeof(RingSlot) == kLine);

struct RingPage {
  static constexpr uint32_t kSlots = kPage / kLine - 2;

  // The writer's. It waits until so many slots were read: kWaits and the count. Pairs with `read`: each side stores its own and looks at the other.
  static constexpr uint64_t kWaits = uint64_t{1} << 32;
  alignas(kLine) std::atomic<uint64_t> waits_for;
  // The reader's.
  alignas(kLine) std::atomic<uint32_t> read;  // slots, of all rounds: gives them back to the writer, which loads it with acquire, and publishes `refused`
  std::atomic<uint32_t> reads_memory;         // 1: it may copy from the writer's process. Publishes nothing
  std::atomic<uint32_t> gone;                 // 1: it reads nothing any more
  std::atomic<uint64_t> refused;              // bytes of the last kMemory that it could not, since it may not any more
  RingSlot slots[kSlots];
};
static_assert(sizeof(RingPage) == kPage);

// What a slot says.
struct RingItem {
  std::span<const uint8_t> first;  // in the slot, which its writer may change all the time
  BulkKind bulk = BulkKind::kNone;
  uint64_t where = 0;
  uint64_t length = 0;
};

class RingWriter {
 public:
  // `before`: slots that both count as written and read already.
  explicit RingWriter(RingPage& page, uint32_t before = 0) : page_(page), written_(before), read_(before) {}

  uint32_t written() const { return written_; }  // slots, of all rounds
  uint32_t read() const { return read_; }        // as of the last Look
  uint32_t under_way() const { return written_ - read_; }
  bool has_room() const { return under_way() < RingPage::kSlots; }
  // Asks how far the reader is. False: it says that it read what was not written.
  [[nodiscard]] bool Look();
  bool reader_reads_memory() const { return page_.reads_memory.load(std::memory_order_relaxed) == 1; }
  // When the reader has read a kMemory: how many of its bytes it refused.
  uint64_t refused() const { return reader_reads_memory() ? 0 : page_.refused.load(std::memory_order_relaxed); }
  bool reader_is_gone() const { return page_.gone.load(std::memory_order_acquire) != 0; }
  // Whether the slots that count as not read yet have the numbers that this one wrote. The reader takes a lost one for a free slot, and waits.
  bool HasItsWords() const;

  // Where the next slot's first bytes go; there is room.
  uint8_t* next() { return page_.slots[at_].bytes; }
  // Gives the slot to the reader, who is still to be rung (NodeSegment::RingAfterFence). Its count.
  uint32_t Put(size_t first_bytes, BulkKind bulk, uint64_t where = 0, uint64_t length = 0) {
    RingSlot& slot = page_.slots[at_];
    if (Refers(bulk)) slot.SetBulk(where, length);
    ++written_;
    if (++at_ == RingPage::kSlots) at_ = 0;
    // Sequentially consistent: whether the reader sleeps is looked at after it, by such a load. Pairs with NodeSegment::WillSleep.
    slot.control.store(uint64_t{written_} | uint64_t{first_bytes} << 32 | static_cast<uint64_t>(bulk) << 40, std::memory_order_seq_cst);
    return written_;
  }

  // Before a sleep: the reader is to ring when it has read so many; to be followed by a Look. 0 is one, too.
  void WaitFor(uint32_t read) {
    page_.waits_for.store(RingPage::kWaits | read, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with RingReader::Publish; the Look is an acquire load, which would pass the store
  }
  void StopWaiting() { page_.waits_for.store(0, std::memory_order_relaxed); }

 private:
  RingPage& page_;
  uint32_t written_, read_;
  uint32_t at_ = 0;  // the slot of the next
};

class RingReader {
 public:
  enum class Result : uint8_t { kNothing, kItem, kNonsense };

  // `cells`: how many the writer has; `cell_bytes` of each.
  RingReader(RingPage& page, uint64_t cells, uint64_t cell_bytes, uint32_t before = 0)
      : page_(page), cells_(cells), cell_bytes_(cell_bytes), read_(before), published_(before) {}

  bool has_news() const { return NumberOf(page_.slots[at_].control.load(std::memory_order_acquire)) == read_ + 1; }
  // The next slot; what it refers to is within the writer's cells, or an address of any kind.
  Result Look(RingItem* item) const;
  // It was read.
  void Advance() {
    ++read_;
    if (++at_ == RingPage::kSlots) at_ = 0;
  }
  // Gives what was read back to the writer. True: it waits for that, and is to be rung.
  [[nodiscard]] bool Publish();
  uint32_t unpublished() const { return read_ - published_; }
  // Whether the count of what was read is the one that this one wrote. The writer waits for it where there is no room.
  bool HasItsWords() const { return page_.read.load(std::memory_order_relaxed) == published_; }

  void set_reads_memory() { page_.reads_memory.store(1, std::memory_order_relaxed); }
  // The last `bytes` of the kMemory that is next, before it is published as read; from now on there is to be none.
  void Refuse(uint64_t bytes) {
    page_.refused.store(bytes, std::memory_order_relaxed);
    page_.reads_memory.store(0, std::memory_order_relaxed);
  }
  void set_gone() { page_.gone.store(1, std::memory_order_release); }

  // No slot carries more from the writer's memory.
  static constexpr uint64_t kMostFromMemory = uint64_t{1} << 30;

 private:
  friend class RingWriter;
  static uint32_t NumberOf(uint64_t control) { return static_cast<uint32_t>(control); }

  RingPage& page_;
  const uint64_t cells_, cell_bytes_;
  uint32_t read_, published_;
  uint32_t at_ = 0;  // the slot of the next
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_P2P_SHM_RING_H_
