#ifndef WIRES_HOST_RING_CONSUMER_H_
#define WIRES_HOST_RING_CONSUMER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/byte_reader.h"
#include "wires/host/ring/layout.h"

namespace weft::host {

// Reads records from a ring whose producer may write anything at any time. One thread at a time. Does not own the
// memory: `bytes` has kRingBytes bytes.
class Consumer {
 public:
  Consumer(RingWords& words, const uint8_t* bytes, uint64_t secret) : words_(words), bytes_(bytes), secret_(secret) {}

  enum class Look : uint8_t {
    kNothing,
    kRecord,
    kBusy,      // the producer is changing a reference, and wakes the consumer afterwards
    kRevoked,   // the producer has revoked a payload that it had referenced: the stream is over there
    kNonsense,  // there is no valid record, and there will never be one
  };
  // A record that was checked. Its lengths are copies; the content of `bytes` can still change.
  struct Record {
    Kind kind = Kind::kUlpdu;
    uint32_t length = 0;  // of the ULPDU, 1 to kMostUlpdu
    uint32_t lines = 0;
    uint8_t acknowledged = 0;  // kUlpdu, kReference
    ByteSpan bytes;       // kUlpdu: the ULPDU
    size_t header_length = 0;              // kReference, kPlaced: 1 to less than `length`
    std::array<uint8_t, kHeaderRoom> header;  // for these kinds: a copy
    // kReference: copies. The payload's pieces have length - header_length bytes together. The reference is claimed:
    // Consume() must follow.
    size_t pieces = 0;
    std::array<Piece, kMostPieces> payload;
  };
  // Skips kSkip records.
  Look Next(Record* record);
  // Whether Next() would say kNothing; cheaper.
  bool empty() const { return StampAt(position_) != StampOf(secret_, position_); }

  // The record of Next() is finished; the producer may reuse its bytes after the next Publish().
  void Consume(const Record& record) { position_ += record.lines; }
  // Tells the producer how far the consumer is.
  void Publish() {
    published_ = position_;
    words_.tail.store(position_, std::memory_order_release);
  }
  // After Publish(): whether the producer waits for this, and must be woken.
  bool TakeBell();
  uint64_t unpublished() const { return position_ - published_; }  // lines

  // The producer must wake us from now on. Returns false if something has already arrived; then the consumer does not
  // sleep.
  bool Sleep();
  void StayAwake() {
    if (words_.wants_data.load(std::memory_order_relaxed) != 0) words_.wants_data.store(0, std::memory_order_relaxed);
  }
  bool asleep() const { return words_.wants_data.load(std::memory_order_relaxed) != 0; }
  void SetReadsMemory() { words_.reads_memory.store(1, std::memory_order_release); }

  // For the reference of Next(), before Consume(): it cannot be read, nor can later ones. The producer must be woken,
  // and copies it. Returns false if the producer has revoked it.
  bool Refuse();
  // ... and after its payload was read: whether the producer has not revoked it meanwhile.
  bool IsStillOurs() const {
    // After the copy. Pairs with the fence in Producer::Revoke, which comes before the program's writes.
    std::atomic_thread_fence(std::memory_order_acquire);
    return ClaimHere().load(std::memory_order_relaxed) != static_cast<uint32_t>(Claim::kRevoked);
  }
  bool IsCopied() const { return ClaimHere().load(std::memory_order_acquire) == static_cast<uint32_t>(Claim::kCopied); }

 private:
  const RecordHead& HeadAt(uint64_t line) const { return *reinterpret_cast<const RecordHead*>(bytes_ + line % kRingLines * kLine); }
  uint64_t StampAt(uint64_t line) const { return HeadAt(line).stamp.load(std::memory_order_acquire); }
  std::atomic<uint32_t>& ClaimHere() const { return const_cast<Reference&>(*reinterpret_cast<const Reference*>(&HeadAt(position_) + 1)).claim; }
  Look NextReference(const RecordHead& head, size_t room, Record* record);
  static Look NextPlaced(const RecordHead& head, Record* record);

  RingWords& words_;
  const uint8_t* const bytes_;
  const uint64_t secret_;
  uint64_t position_ = 0, published_ = 0;
};

}  // namespace weft::host

#endif  // WIRES_HOST_RING_CONSUMER_H_
