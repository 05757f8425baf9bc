#ifndef MPI_HYBRID_P2P_HOST_RING_H_
#define MPI_HYBRID_P2P_HOST_RING_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "mpi_hybrid/host/layout.h"

namespace weft::mpi::host {

// The bytes of one link in one direction: a page of the host segment that one process writes and one reads, as slots of
// one cache line each.
//
//  0               4           5       6       8                                48              56            64
//  +---------------+-----------+-------+-------+---------------------------------+---------------+-------------+
//  | number        | bytes     | kind  | 0     | the first bytes                 | where         | length      |
//  +---------------+-----------+-------+-------+---------------------------------+---------------+-------------+
//
// The number tells that the slot was written. Slots are counted from 1; a slot with the number of an earlier round is
// still free. Bytes that do not fit are elsewhere: in a cell of the writer (cells.h), or in its private memory, from
// which the reader copies them with one system call. A slot without such a reference has space for more of the first
// bytes. If the reader loses the permission to read the memory, it refuses the rest, and the writer then sends those
// bytes again as the next bytes. An offer is not part of the bytes: the reader may copy the offered data at any time,
// until a frame of its own says that it has, or asks for the data.
//
// The other side may write invalid values; therefore a value is copied once and the copy is checked. A third process
// may write here as well; only the owner of a word can detect that (HasItsWords).
enum class BulkKind : uint8_t {
  kNone = 0,
  kCell = 1,    // `where` is the index of a cell
  kMemory = 2,  // `where` is an address in the writer's process
  kEnd = 3,     // end of the bytes
  kOffer = 4,   // the first bytes announce a message whose data is at the address `where` in the writer's process
};

constexpr bool Refers(BulkKind kind) { return kind == BulkKind::kCell || kind == BulkKind::kMemory || kind == BulkKind::kOffer; }

struct alignas(kLine) RingSlot {
  static constexpr size_t kInline = 56, kInlineBesideBulk = 40;
  static constexpr size_t kWhereAt = kInlineBesideBulk, kLengthAt = kWhereAt + sizeof(uint64_t);

  void SetBulk(uint64_t where, uint64_t length) {
    std::memcpy(bytes + kWhereAt, &where, sizeof(where));
    std::memcpy(bytes + kLengthAt, &length, sizeof(length));
  }

  // publishes the bytes, the cell and the referenced memory; the reader loads it with acquire
  std::atomic<uint64_t> control;
  uint8_t bytes[kInline];
};
static_assert(sizeof(RingSlot) == kLine);

struct RingPage {
  static constexpr uint32_t kSlots = kPage / kLine - 2;

  // Written by the writer: kWaits and the number of slots whose reading it waits for. Pairs with `read`: each side
  // stores its own word and then checks the other's.
  static constexpr uint64_t kWaits = uint64_t{1} << 32;
  alignas(kLine) std::atomic<uint64_t> waits_for;
  // Written by the reader.
  // slots read in all rounds: returns them to the writer, which loads it with acquire, and publishes `refused`
  alignas(kLine) std::atomic<uint32_t> read;
  std::atomic<uint32_t> reads_memory;         // 1: the reader may copy from the writer's process. Publishes nothing
  std::atomic<uint32_t> gone;                 // 1: the reader no longer reads
  // bytes of the last kMemory that the reader could not copy, because it lost the permission
  std::atomic<uint64_t> refused;
  RingSlot slots[kSlots];
};
static_assert(sizeof(RingPage) == kPage);

// The content of a slot.
struct RingItem {
  std::span<const uint8_t> first;  // in the slot; the writer may change it at any time
  BulkKind bulk = BulkKind::kNone;
  uint64_t where = 0;
  uint64_t length = 0;
};

class RingWriter {
 public:
  // `before`: initial number of slots, both written and read.
  explicit RingWriter(RingPage& page, uint32_t before = 0) : page_(page), written_(before), read_(before) {}

  uint32_t written() const { return written_; }  // slots in all rounds
  uint32_t read() const { return read_; }        // as of the last Look()
  uint32_t under_way() const { return written_ - read_; }
  bool has_room() const { return under_way() < RingPage::kSlots; }
  // Updates read(). False: the reader claims to have read slots that were not written.
  [[nodiscard]] bool Look();
  bool reader_reads_memory() const { return page_.reads_memory.load(std::memory_order_relaxed) == 1; }
  // After the reader has read a kMemory: how many of its bytes it refused.
  uint64_t refused() const { return reader_reads_memory() ? 0 : page_.refused.load(std::memory_order_relaxed); }
  bool reader_is_gone() const { return page_.gone.load(std::memory_order_acquire) != 0; }
  // Whether the slots that count as unread still have the numbers that this process wrote. If one is overwritten, the
  // reader takes it for a free slot and waits.
  bool HasItsWords() const;

  // Where to write the first bytes of the next slot. has_room() must be true.
  uint8_t* next() { return page_.slots[at_].bytes; }
  // Passes the slot to the reader. The caller must then ring (Segment::RingAfterFence). Returns the number of slots
  // written.
  uint32_t Put(size_t first_bytes, BulkKind bulk, uint64_t where = 0, uint64_t length = 0) {
    RingSlot& slot = page_.slots[at_];
    if (Refers(bulk)) slot.SetBulk(where, length);
    ++written_;
    if (++at_ == RingPage::kSlots) at_ = 0;
    // Sequentially consistent: the caller then checks by such a load whether the reader sleeps. Pairs with
    // Segment::WillSleep.
    slot.control.store(uint64_t{written_} | uint64_t{first_bytes} << 32 | static_cast<uint64_t>(bulk) << 40, std::memory_order_seq_cst);
    return written_;
  }

  // Called before a sleep: the reader rings when it has read `read` slots, which may be 0. Call Look() afterwards.
  void WaitFor(uint32_t read) {
    page_.waits_for.store(RingPage::kWaits | read, std::memory_order_relaxed);
    // pairs with RingReader::Publish. Look() loads with acquire only, which could pass the store
    std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  void StopWaiting() { page_.waits_for.store(0, std::memory_order_relaxed); }

 private:
  RingPage& page_;
  uint32_t written_, read_;
  uint32_t at_ = 0;  // index of the next slot
};

class RingReader {
 public:
  enum class Result : uint8_t { kNothing, kItem, kNonsense };

  // `cells`: number of cells of the writer, of `cell_bytes` bytes each.
  RingReader(RingPage& page, uint64_t cells, uint64_t cell_bytes, uint32_t before = 0)
      : page_(page), cells_(cells), cell_bytes_(cell_bytes), read_(before), published_(before) {}

  bool has_news() const { return NumberOf(page_.slots[at_].control.load(std::memory_order_acquire)) == read_ + 1; }
  // The next slot. A reference in it is within the writer's cells, or it is an unchecked address.
  Result Look(RingItem* item) const;
  // The slot has been read.
  void Advance() {
    ++read_;
    if (++at_ == RingPage::kSlots) at_ = 0;
  }
  // Returns the slots that were read to the writer. True: the writer waits for that and must be rung.
  [[nodiscard]] bool Publish();
  uint32_t unpublished() const { return read_ - published_; }
  // Whether the number of slots read is still the one that this process wrote. The writer waits for it when the ring is
  // full.
  bool HasItsWords() const { return page_.read.load(std::memory_order_relaxed) == published_; }

  void set_reads_memory() { page_.reads_memory.store(1, std::memory_order_relaxed); }
  // Refuses the last `bytes` bytes of the next kMemory. Call it before that slot is published as read. No further
  // kMemory is accepted.
  void Refuse(uint64_t bytes) {
    page_.refused.store(bytes, std::memory_order_relaxed);
    page_.reads_memory.store(0, std::memory_order_relaxed);
  }
  void set_gone() { page_.gone.store(1, std::memory_order_release); }

  // Limit, in bytes, for a reference to the writer's memory in one slot.
  static constexpr uint64_t kMostFromMemory = uint64_t{1} << 30;

 private:
  friend class RingWriter;
  static uint32_t NumberOf(uint64_t control) { return static_cast<uint32_t>(control); }

  RingPage& page_;
  const uint64_t cells_, cell_bytes_;
  uint32_t read_, published_;
  uint32_t at_ = 0;  // index of the next slot
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_P2P_HOST_RING_H_
