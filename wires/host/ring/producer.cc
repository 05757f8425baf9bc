#include "wires/host/ring/producer.h"

#include <cstring>

#include "base/check.h"
#include "base/copy.h"
#include "base/dma_scope.h"
#include "base/program_memory.h"

namespace weft::host {

bool Producer::HasRoom(size_t record_bytes, uint32_t spare_lines) {
  const uint32_t lines = LinesFor(record_bytes);
  const uint32_t to_end = kRingLines - static_cast<uint32_t>(head_ % kRingLines);
  const uint32_t needed = spare_lines + (lines <= to_end ? lines : to_end + lines);
  if (head_ - tail_ + needed <= kRingLines) [[likely]] return true;
  return Refresh() && head_ - tail_ + needed <= kRingLines;
}

bool Producer::Refresh() {
  const uint64_t tail = words_.tail.load(std::memory_order_acquire);
  if (tail < tail_ || tail > head_) return false;
  tail_ = tail;
  return true;
}

RecordHead& Producer::Reserve(size_t record_bytes) {
  const uint32_t lines = LinesFor(record_bytes);
  const uint32_t to_end = kRingLines - static_cast<uint32_t>(head_ % kRingLines);
  if (lines > to_end) {
    RecordHead& skip = HeadAt(head_);
    skip.kind = static_cast<uint8_t>(Kind::kSkip);
    skip.stamp.store(StampOf(secret_, head_), std::memory_order_release);
    head_ += to_end;
  }
  return HeadAt(head_);
}

void Producer::Publish(RecordHead& record, size_t record_bytes) {
  record.stamp.store(StampOf(secret_, head_), std::memory_order_release);
  head_ += LinesFor(record_bytes);
}

bool Producer::AppendUlpdu(ByteSpan header, std::span<const iovec> payload, size_t payload_length, uint8_t acknowledged, bool volatile_payload) {
  const size_t length = header.size() + payload_length;
  RecordHead& record = Reserve(RecordBytes(length));
  record.length = static_cast<uint32_t>(length);
  record.kind = static_cast<uint8_t>(Kind::kUlpdu);
  record.acknowledged = acknowledged;
  auto* to = reinterpret_cast<uint8_t*>(&record + 1);
  std::memcpy(to, header.data(), header.size());
  to += header.size();
  const bool by_kernel = ThreadOfOurs() && !volatile_payload;
  const DmaScope dma;
  for (const iovec& piece : payload) {
    if (by_kernel) [[unlikely]] {
      if (!ReadProgramMemory(to, piece.iov_base, piece.iov_len)) return false;
    } else {
      CopyBytes(to, piece.iov_base, piece.iov_len);
    }
    to += piece.iov_len;
  }
  Publish(record, RecordBytes(length));
  return true;
}

uint64_t Producer::AppendReference(ByteSpan header, std::span<const iovec> payload, size_t payload_length, uint8_t acknowledged) {
  WEFT_CHECK(header.size() <= kHeaderRoom && payload.size() <= kMostPieces);
  const size_t bytes = ReferenceRecordBytes(payload.size());
  RecordHead& record = Reserve(bytes);
  record.length = static_cast<uint32_t>(header.size() + payload_length);
  record.kind = static_cast<uint8_t>(Kind::kReference);
  record.acknowledged = acknowledged;
  record.pieces = static_cast<uint8_t>(payload.size());
  record.header = static_cast<uint8_t>(header.size());
  Reference& reference = ReferenceAt(head_);
  reference.claim.store(static_cast<uint32_t>(Claim::kNobody), std::memory_order_relaxed);
  std::memcpy(reference.header, header.data(), header.size());
  for (size_t i = 0; i < payload.size(); ++i) {
    reference.pieces[i] = {reinterpret_cast<uintptr_t>(payload[i].iov_base), payload[i].iov_len};
  }
  const uint64_t line = head_;
  Publish(record, bytes);
  return line;
}

void Producer::AppendPlaced(ByteSpan header, size_t payload_length) {
  WEFT_CHECK(header.size() <= kHeaderRoom);
  RecordHead& record = Reserve(RecordBytes(header.size()));
  record.length = static_cast<uint32_t>(header.size() + payload_length);
  record.kind = static_cast<uint8_t>(Kind::kPlaced);
  record.header = static_cast<uint8_t>(header.size());
  std::memcpy(reinterpret_cast<uint8_t*>(&record + 1), header.data(), header.size());
  Publish(record, RecordBytes(header.size()));
}

void Producer::AppendSignal(Kind kind) {
  RecordHead& record = Reserve(sizeof(RecordHead));
  record.length = 0;
  record.kind = static_cast<uint8_t>(kind);
  Publish(record, sizeof(RecordHead));
}

// The consumer says that it sleeps, and then looks once more; we append, and then look whether it sleeps: one of the two sees the other.
bool Producer::TakeBell() {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (words_.wants_data.load(std::memory_order_relaxed) == 0) [[likely]] return false;
  return words_.wants_data.exchange(0, std::memory_order_acq_rel) != 0;
}

bool Producer::AskForRoom() {
  words_.wants_room.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return words_.tail.load(std::memory_order_acquire) != tail_;
}

Claim Producer::ClaimBack(uint64_t line) {
  auto found = static_cast<uint32_t>(Claim::kNobody);
  ReferenceAt(line).claim.compare_exchange_strong(found, static_cast<uint32_t>(Claim::kProducer), std::memory_order_acq_rel);
  return static_cast<Claim>(found);
}

Claim Producer::Revoke(uint64_t line) {
  const uint32_t found = ReferenceAt(line).claim.exchange(static_cast<uint32_t>(Claim::kRevoked), std::memory_order_acq_rel);
  // Before the program writes to its memory again. Pairs with Consumer::IsStillOurs.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return static_cast<Claim>(found);
}

void Producer::Replace(uint64_t line, const void* payload, size_t length) {
  Reference& reference = ReferenceAt(line);
  reference.pieces[0] = {reinterpret_cast<uintptr_t>(payload), length};
  // As many pieces as before: the record's length in lines stays.
  for (size_t i = 1; i < HeadAt(line).pieces && i < kMostPieces; ++i) reference.pieces[i] = {0, 0};
  reference.claim.store(static_cast<uint32_t>(Claim::kNobody), std::memory_order_release);
}

}  // namespace weft::host
