#ifndef WIRES_HOST_RING_PRODUCER_H_
#define WIRES_HOST_RING_PRODUCER_H_

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/byte_reader.h"
#include "wires/host/ring/layout.h"

namespace weft::host {

// Writes records into a ring. One thread at a time. Does not own the memory: `bytes` are kRingBytes of it.
class Producer {
 public:
  Producer(RingWords& words, uint8_t* bytes, uint64_t secret) : words_(words), bytes_(bytes), secret_(secret) {}

  // Whether a record of so many bytes (RecordBytes, ReferenceRecordBytes) can be appended, with so many lines to spare behind it.
  bool HasRoom(size_t record_bytes, uint32_t spare_lines);
  static size_t RecordBytes(size_t ulpdu_length) { return sizeof(RecordHead) + ulpdu_length; }
  static size_t ReferenceRecordBytes(size_t pieces) { return sizeof(RecordHead) + kReferenceBytes + pieces * sizeof(Piece); }

  // After HasRoom(). The consumer can see the record at once; whether it looks, TakeBell() says.
  // `acknowledged`: stands beside the ULPDU.
  // False: the payload is not there (any more), and nothing was appended. `volatile_payload`: it is no memory of the program's.
  bool AppendUlpdu(ByteSpan header, std::span<const iovec> payload, size_t payload_length, uint8_t acknowledged = 0, bool volatile_payload = false);
  // The pieces stay where they are until passed(). `header` has at most kHeaderRoom bytes, and there are at most kMostPieces pieces.
  // Returns the line on which the record begins.
  uint64_t AppendReference(ByteSpan header, std::span<const iovec> payload, size_t payload_length, uint8_t acknowledged = 0);
  // `header` has at most kHeaderRoom bytes.
  void AppendPlaced(ByteSpan header, size_t payload_length);
  void AppendSignal(Kind kind);

  // Lines appended since the beginning.
  uint64_t head() const { return head_; }
  // Of these, the consumer is through with so many. False: what it says makes no sense.
  bool Refresh();
  uint64_t passed() const { return tail_; }

  // Whether the consumer sleeps and is to be woken; once for each time that it fell asleep. After appending.
  bool TakeBell();
  // The consumer is to say when it is through with more. True: it is already, or says nonsense: call Refresh().
  bool AskForRoom();
  bool consumer_reads_memory() const { return words_.reads_memory.load(std::memory_order_relaxed) != 0; }

  // The record on that line, a reference that is not passed yet: kNobody: it is ours now, and Replace() lets it go again; else who has it.
  Claim ClaimBack(uint64_t line);
  // Takes it back for good: what the consumer may be reading of it counts as not received. Who had it.
  Claim Revoke(uint64_t line);
  // The payload of the record lies there from now on, all of it.
  void Replace(uint64_t line, const void* payload, size_t length);
  // Such a record: the consumer wants a copy of its payload, and waits until it is told that there is one. It refuses one at a time.
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
