#ifndef WIRES_HOST_RING_PRODUCER_H_
#define WIRES_HOST_RING_PRODUCER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_reader.h"
#include "wires/host/ring/layout.h"

namespace weft::host {

// Writes records into a ring. One thread at a time. Does not own the memory: `bytes` has kRingBytes bytes.
class Producer {
 public:
  Producer(RingWords& words, uint8_t* bytes, uint64_t secret) : words_(words), bytes_(bytes), secret_(secret) {}

  // Whether a record of so many bytes (RecordBytes, ReferenceRecordBytes) can be appended, with `spare_lines` lines
  // left behind it.
  bool HasRoom(size_t record_bytes, uint32_t spare_lines);
  static size_t RecordBytes(size_t ulpdu_length) { return sizeof(RecordHead) + ulpdu_length; }
  static size_t ReferenceRecordBytes(size_t pieces) { return sizeof(RecordHead) + kReferenceBytes + pieces * sizeof(Piece); }

  // Call after HasRoom(). The consumer can see the record at once; TakeBell() tells whether it must be woken.
  // `acknowledged`: stored with the ULPDU. Returns false if the payload is no longer mapped; nothing was appended.
  // `volatile_payload`: it is not memory of the program.
  bool AppendUlpdu(ByteSpan header, std::span<const iovec> payload, size_t payload_length, uint8_t acknowledged = 0, bool volatile_payload = false);
  // The pieces must stay where they are until passed(). `header` has at most kHeaderRoom bytes; there are at most
  // kMostPieces pieces. Returns the line on which the record begins.
  uint64_t AppendReference(ByteSpan header, std::span<const iovec> payload, size_t payload_length, uint8_t acknowledged = 0);
  // `header` has at most kHeaderRoom bytes.
  void AppendPlaced(ByteSpan header, size_t payload_length);
  void AppendSignal(Kind kind);

  // Number of lines appended since the beginning.
  uint64_t head() const { return head_; }
  // Reads how many of them the consumer has finished. Returns false if the value is invalid.
  bool Refresh();
  uint64_t passed() const { return tail_; }

  // Call after appending. Whether the consumer sleeps and must be woken; true once for each time that it fell asleep.
  bool TakeBell();
  // Asks the consumer to report when it has finished more lines. Returns true if it already has, or if its value is
  // invalid: call Refresh().
  bool AskForRoom();
  bool consumer_reads_memory() const { return words_.reads_memory.load(std::memory_order_relaxed) != 0; }

  // For the record on that line, a reference that is not passed yet. kNobody: the producer holds it now, and Replace()
  // releases it; otherwise the holder.
  Claim ClaimBack(uint64_t line);
  // Revokes the payload for good: what the consumer may be reading of it counts as not received. Returns the previous
  // holder.
  Claim Revoke(uint64_t line);
  // From now on, the whole payload of the record is at `payload`.
  void Replace(uint64_t line, const void* payload, size_t length);
  // For such a record: whether the consumer wants a copy of its payload, and waits until there is one. It refuses one
  // at a time.
  bool IsRefused(uint64_t line) { return ReferenceAt(line).claim.load(std::memory_order_acquire) == static_cast<uint32_t>(Claim::kRefused); }
  void SetCopied(uint64_t line) { ReferenceAt(line).claim.store(static_cast<uint32_t>(Claim::kCopied), std::memory_order_release); }

 private:
  RecordHead& HeadAt(uint64_t line) { return *reinterpret_cast<RecordHead*>(bytes_ + line % kRingLines * kLine); }
  Reference& ReferenceAt(uint64_t line) { return *reinterpret_cast<Reference*>(&HeadAt(line) + 1); }
  RecordHead& Reserve(size_t record_bytes);
  void Publish(RecordHead& record, size_t record_bytes);

  RingWords& words_;
  uint8_t* const bytes_;
  const uint64_t secret_;
  uint64_t head_ = 0, tail_ = 0;
};

}  // namespace weft::host

#endif  // WIRES_HOST_RING_PRODUCER_H_
