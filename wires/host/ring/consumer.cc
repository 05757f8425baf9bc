#include "wires/host/ring/consumer.h"

#include <cstring>

namespace weft::host {
namespace {

// One load, whatever the compiler thinks of the memory.
template <typename T>
T ReadOnce(const T& from) {
  return __atomic_load_n(&from, __ATOMIC_RELAXED);
}

// What follows is another processor's yet: the next lines come while this one is looked at.
void PrefetchBehind(const RecordHead& head) {
  const auto* const line = reinterpret_cast<const uint8_t*>(&head);
  __builtin_prefetch(line + kLine);
  __builtin_prefetch(line + 2 * kLine);
}

}  // namespace

Consumer::Look Consumer::Next(Record* record) {
  for (int skipped = 0;; ++skipped) {
    if (empty()) return Look::kNothing;
    const RecordHead& head = HeadAt(position_);
    const uint32_t to_end = kRingLines - static_cast<uint32_t>(position_ % kRingLines);
    const size_t room = to_end * kLine - sizeof(RecordHead);
    record->kind = static_cast<Kind>(ReadOnce(head.kind));
    record->length = ReadOnce(head.length);
    record->acknowledged = ReadOnce(head.acknowledged);
    PrefetchBehind(head);
    switch (record->kind) {
      case Kind::kUlpdu:
        if (record->length == 0 || record->length > kMostUlpdu || record->length > room) return Look::kNonsense;
        record->bytes = {reinterpret_cast<const uint8_t*>(&head + 1), record->length};
        record->lines = LinesFor(sizeof(RecordHead) + record->length);
        return Look::kRecord;
      case Kind::kReference:
        return NextReference(head, room, record);
      case Kind::kPlaced:
        return NextPlaced(head, record);
      case Kind::kMoved:
      case Kind::kMove:
        record->lines = 1;
        return Look::kRecord;
      case Kind::kSkip:
        if (skipped != 0) return Look::kNonsense;
        position_ += to_end;
        continue;
    }
    return Look::kNonsense;
  }
}

Consumer::Look Consumer::NextReference(const RecordHead& head, size_t room, Record* record) {
  if (room < kReferenceBytes) return Look::kNonsense;
  auto& reference = *const_cast<Reference*>(reinterpret_cast<const Reference*>(&head + 1));
  auto nobody = static_cast<uint32_t>(Claim::kNobody);
  if (!reference.claim.compare_exchange_strong(nobody, static_cast<uint32_t>(Claim::kConsumer), std::memory_order_acq_rel)) {
    if (nobody == static_cast<uint32_t>(Claim::kProducer)) return Look::kBusy;
    return nobody == static_cast<uint32_t>(Claim::kRevoked) ? Look::kRevoked : Look::kNonsense;
  }
  record->header_length = ReadOnce(head.header);
  record->pieces = ReadOnce(head.pieces);
  if (record->length > kMostUlpdu || record->header_length == 0 || record->header_length > kHeaderRoom) return Look::kNonsense;
  if (record->pieces == 0 || record->pieces > kMostPieces || kReferenceBytes + record->pieces * sizeof(Piece) > room) return Look::kNonsense;
  std::memcpy(record->header.data(), reference.header, record->header_length);
  uint64_t left = record->length;
  if (left <= record->header_length) return Look::kNonsense;
  left -= record->header_length;
  for (size_t i = 0; i < record->pieces; ++i) {
    record->payload[i] = {ReadOnce(reference.pieces[i].address), ReadOnce(reference.pieces[i].length)};
    if (record->payload[i].length > left) return Look::kNonsense;
    left -= record->payload[i].length;
  }
  if (left != 0) return Look::kNonsense;
  record->lines = LinesFor(sizeof(RecordHead) + kReferenceBytes + record->pieces * sizeof(Piece));
  return Look::kRecord;
}

Consumer::Look Consumer::NextPlaced(const RecordHead& head, Record* record) {
  static_assert(sizeof(RecordHead) + kHeaderRoom <= kLine);
  record->header_length = ReadOnce(head.header);
  if (record->header_length == 0 || record->header_length > kHeaderRoom) return Look::kNonsense;
  if (record->length <= record->header_length || record->length > kMostUlpdu) return Look::kNonsense;
  std::memcpy(record->header.data(), &head + 1, record->header_length);
  record->lines = LinesFor(sizeof(RecordHead) + record->header_length);
  return Look::kRecord;
}

bool Consumer::Refuse() {
  words_.reads_memory.store(0, std::memory_order_relaxed);
  auto ours = static_cast<uint32_t>(Claim::kConsumer);
  return ClaimHere().compare_exchange_strong(ours, static_cast<uint32_t>(Claim::kRefused), std::memory_order_acq_rel);
}

bool Consumer::TakeBell() {
  std::atomic_thread_fence(std::memory_order_seq_cst);  // between Publish() and the look. Pairs with Producer::AskForRoom
  if (words_.wants_room.load(std::memory_order_relaxed) == 0) [[likely]] return false;
  return words_.wants_room.exchange(0, std::memory_order_acq_rel) != 0;
}

bool Consumer::Sleep() {
  words_.wants_data.store(1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with Producer::TakeBell
  return empty();
}

}  // namespace weft::host
