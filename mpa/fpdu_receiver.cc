#include "mpa/fpdu_receiver.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/program_memory.h"
#include "mpa/fpdu_layout.h"

namespace weft::mpa {
namespace {

static_assert(BufferPool::kBlockSize >= 2 * kMaxMarkedFpduLength);

// From this ULPDU length on, one read per FPDU costs less than copying what a longer read-ahead would bring.
constexpr size_t kLongUlpdu = 8 * 1024;
// Behind a long FPDU: its PAD and CRC field, and the next one's length and head, so that one read ends this FPDU and
// lets the next be placed directly. If the next one is mostly as short as that, all of it.
constexpr size_t kShortReadAhead = 128;
static_assert(kShortReadAhead >= 3 + kCrcLength + kLengthFieldLength + llp::kUlpduHeadLength);
// Among short FPDUs: many of them in one read, and still within the first-level cache.
constexpr size_t kLongReadAhead = 32 * 1024;
// Bytes that are worth moving so that the same, warm part of the block is used again.
constexpr size_t kCheapToMove = 512;

size_t LengthField(const uint8_t* at) { return static_cast<size_t>(at[0]) << 8 | at[1]; }

}  // namespace

FpduReceiver::FpduReceiver(const Options& options, BufferPool& pool, llp::UlpduSink& sink)
    : options_(options), pool_(pool), sink_(sink) {}

std::span<const iovec> FpduReceiver::PrepareRead() {
  if (!staging_) {
    staging_ = pool_.Take();
    begin_ = end_ = 0;
  }
  size_t pieces = 0;
  prepared_direct_ = 0;
  bool room_after_payload = true;
  if (placing_ && !discarding_ && payload_left_ != 0) {
    const llp::Placement::Listed listed = placement_.List(payload_left_, pieces_);
    pieces = listed.pieces;
    prepared_direct_ = listed.bytes;
    room_after_payload = listed.bytes == payload_left_ && pieces < kMaxPieces;
  }
  prepared_ = prepared_direct_;
  if (room_after_payload) {
    const size_t wanted = StagingWanted();
    // Of a long frame that is staged in part only the rest must have room.
    const size_t needed = frame_total_ >= kLongUlpdu ? frame_total_ - (end_ - begin_) : wanted;
    if (end_ - begin_ <= kCheapToMove || BufferPool::kBlockSize - end_ < needed) MoveStagedToFront();
    const size_t length = std::min(wanted, BufferPool::kBlockSize - end_);
    pieces_[pieces++] = {staging_.data() + end_, length};
    prepared_ += length;
  }
  return {pieces_.data(), pieces};
}

// A thread of Weft copies with a call of the kernel, even a few bytes: where no tiny frame is to be expected, no payload
// is read ahead.
size_t FpduReceiver::ReadAhead() const {
  if (!near_long()) return kLongReadAhead;
  if (staged_whole() || tiny_follows_[since_long_]) return kShortReadAhead;
  if (placing_) return tail_left_ + kLengthFieldLength + long_header_;
  const size_t here = end_ - begin_;
  const size_t head = kLengthFieldLength + (here <= kLengthFieldLength ? long_header_ : llp::HeadLength(staged().subspan(kLengthFieldLength)));
  return head - std::min(head - 1, here);
}

void FpduReceiver::Note(size_t length, size_t header_length) {
  if (near_long()) tiny_follows_[since_long_] = FpduLength(length) + kLengthFieldLength + llp::kTaggedHeadLength <= kShortReadAhead;
  if (since_long_ == 0) after_long_ = length;
  last_length_ = length;
  if (length >= kLongUlpdu) {
    long_length_ = length;
    long_header_ = header_length;
    since_long_ = 0;
  } else if (near_long()) {
    ++since_long_;
  }
}

// How many bytes to ask for behind end_.
size_t FpduReceiver::StagingWanted() const {
  if (stopped_) return kLongReadAhead;
  if (discarding_) return payload_left_ + ReadAhead();
  if (!staged_whole()) return ReadAhead();
  if (frame_total_ != 0) {
    const size_t missing = frame_total_ - (end_ - begin_);
    return missing + (frame_total_ >= kLongUlpdu ? FpduLength(after_long_) + kShortReadAhead : LongOrMany(last_length_));
  }
  return LongOrMany(near_long() ? long_length_ : 0);
}

// Where nothing is placed directly, asking for a whole FPDU costs nothing. A message of 64 KiB is a long and a short one.
size_t FpduReceiver::LongOrMany(size_t length) { return length >= kLongUlpdu ? FpduLength(length) + kShortReadAhead : kLongReadAhead; }

void FpduReceiver::MoveStagedToFront() {
  if (begin_ == 0) return;
  std::memmove(staging_.data(), staging_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
}

bool FpduReceiver::Commit(size_t count) {
  WEFT_CHECK(count <= prepared_);
  const size_t direct = std::min(count, prepared_direct_);
  prepared_ = prepared_direct_ = 0;
  if (!stopped_) {
    placement_.Advance(direct);
    payload_left_ -= direct;
    end_ += count - direct;
    Deferred deferred;  // NOLINT: filled as it is used
    deferred_ = &deferred;
    stopped_ = !(staged_whole() ? ParseWhole() : ParseAsItComes());
    if (!PlaceDeferred()) stopped_ = true;
    deferred_ = nullptr;
  }
  if (stopped_) {
    placing_ = false;
    begin_ = end_ = 0;
  }
  if (begin_ == end_) {
    begin_ = end_ = 0;
    staging_.Reset();
  }
  return !stopped_;
}

bool FpduReceiver::at_boundary() const { return !placing_ && begin_ == end_; }

bool FpduReceiver::DivertPlacement() {
  if (!placing_) return false;
  discarding_ = true;
  return true;
}

bool FpduReceiver::GiveUpPlacement() {
  if (!placing_ || discarding_) return false;
  discarding_ = true;
  sink_.OnUnplaceable();
  return true;
}

bool FpduReceiver::Fail(FpduError error) {
  error_ = error;
  return false;
}

// Without CRC and markers: the sink learns of an ULPDU as soon as its head is there, and what came of its payload is
// placed at once. End() waits for the CRC field, which is not looked at (RFC 5044 section 4.1: present and of any
// value).
bool FpduReceiver::ParseAsItComes() {
  for (;;) {
    if (placing_) {
      const size_t payload = std::min(payload_left_, end_ - begin_);
      if (!discarding_ && !placement_.Copy(staged().first(payload))) GiveUpPlacement();
      begin_ += payload;
      payload_left_ -= payload;
      if (payload_left_ != 0) return true;

      const size_t tail = std::min(tail_left_, end_ - begin_);
      begin_ += tail;
      tail_left_ -= tail;
      if (tail_left_ != 0) return true;

      placing_ = discarding_ = false;
      if (!sink_.End()) return false;
    }

    if (end_ - begin_ < kLengthFieldLength) return true;
    const size_t length = LengthField(staged().data());
    if (length == 0 || length > options_.max_ulpdu) return Fail(FpduError::kBadLength);
    const size_t head_length = std::min(length, llp::HeadLength(staged().subspan(kLengthFieldLength)));
    if (end_ - begin_ < kLengthFieldLength + head_length) return true;

    llp::UlpduPlan plan;
    if (!sink_.Begin(length, staged().subspan(kLengthFieldLength, head_length), &plan)) return false;
    WEFT_CHECK(plan.header_length <= head_length);
    Note(length, plan.header_length);
    const size_t tail_length = PadLength(length) + kCrcLength;
    if (end_ - begin_ >= kLengthFieldLength + length + tail_length) {
      const ByteSpan ulpdu = staged().subspan(kLengthFieldLength, length);
      if (Defer(ulpdu, plan) || PlaceWithDeferred(ulpdu, plan)) {
        begin_ += kLengthFieldLength + length + tail_length;
        if (!sink_.End()) return false;
        continue;
      }
    }
    if (!PlaceDeferred()) return false;
    placement_.Start(plan.payload, plan.ours);
    placing_ = true;
    discarding_ = plan.discard;
    begin_ += kLengthFieldLength + plan.header_length;
    payload_left_ = length - plan.header_length;
    tail_left_ = tail_length;
  }
}

bool FpduReceiver::Defer(ByteSpan ulpdu, const llp::UlpduPlan& plan) {
  return plan.deferrable && ThreadOfOurs() && AddDeferred(ulpdu, plan);
}

bool FpduReceiver::PlaceWithDeferred(ByteSpan ulpdu, const llp::UlpduPlan& plan) {
  if (deferred_->count == 0 || plan.discard || plan.ours || !AddDeferred(ulpdu, plan)) return false;
  if (Scatter(*deferred_)) {
    deferred_->count = 0;
    return true;
  }
  --deferred_->count;
  return false;
}

bool FpduReceiver::AddDeferred(ByteSpan ulpdu, const llp::UlpduPlan& plan) {
  if (plan.payload.size() != 1 || deferred_->count == Deferred::kMost) return false;
  const size_t i = deferred_->count;
  if (i != 0) {
    const iovec& last = deferred_->ulpdus[i - 1];
    const auto gap = static_cast<size_t>(ulpdu.data() + plan.header_length - static_cast<const uint8_t*>(last.iov_base)) - last.iov_len;
    if (gap > deferred_->gap.size()) return false;
    deferred_->to[2 * i - 1] = {deferred_->gap.data(), gap};
  }
  deferred_->ulpdus[i] = {const_cast<uint8_t*>(ulpdu.data()), ulpdu.size()};
  deferred_->to[2 * i] = plan.payload.front();
  ++deferred_->count;
  return true;
}

bool FpduReceiver::Scatter(const Deferred& deferred) {
  uint8_t* const first = deferred.payload(0);
  const iovec staged{first, static_cast<size_t>(deferred.end(deferred.count - 1) - first)};
  return ScatterToProgramMemory({deferred.to.data(), 2 * deferred.count - 1}, {&staged, 1});
}

bool FpduReceiver::PlaceDeferred() {
  if (deferred_->count == 0) [[likely]]
    return true;
  const bool placed = Scatter(*deferred_);
  const size_t count = std::exchange(deferred_->count, 0);
  if (placed) return true;
  for (size_t i = 0; i < count; ++i) {
    const iovec& to = deferred_->to[2 * i];
    if (WriteProgramMemory(to.iov_base, deferred_->payload(i), to.iov_len)) continue;
    for (size_t later = count; later-- > i;) {
      const iovec& ulpdu = deferred_->ulpdus[later];
      const size_t head_length = std::min(ulpdu.iov_len, llp::kUlpduHeadLength);
      sink_.OnUnplaced(ulpdu.iov_len, {static_cast<const uint8_t*>(ulpdu.iov_base), head_length}, later == i);
    }
    return false;
  }
  return true;
}

// With CRC or markers: FPDU by FPDU (RFC 5044 section 6), verified before the sink hears of it.
bool FpduReceiver::ParseWhole() {
  for (;;) {
    const size_t lead = options_.markers && position_ % kMarkerInterval == 0 ? kMarkerLength : 0;
    if (end_ - begin_ < lead + kLengthFieldLength) {
      frame_total_ = 0;
      return true;
    }
    const uint8_t* frame = staged().data();
    const size_t length = LengthField(frame + lead);
    if (length == 0 || length > options_.max_ulpdu) return Fail(FpduError::kBadLength);
    size_t total = lead + FpduLength(length);
    if (options_.markers) total += kMarkerLength * MarkersInside(position_ + lead, FpduLength(length));
    frame_total_ = total;
    if (end_ - begin_ < total) return true;

    // From the first byte, a marker before the length field included, to the CRC field (section 4.4).
    if (options_.crc && Crc32c({frame, total - kCrcLength}) != LoadCrc32c(frame + total - kCrcLength)) {
      return Fail(FpduError::kBadCrc);
    }
    // Section 8, code 3: only "in the event that the CRC is valid".
    if (options_.markers && !MarkersAgree(lead, total)) return Fail(FpduError::kBadMarker);
    if (!DeliverWhole(lead, length, total)) return false;
    Note(length, /*header_length=*/0);
    begin_ += total;
    position_ += total;
  }
}

bool FpduReceiver::MarkersAgree(size_t lead, size_t total) const {
  const uint8_t* frame = staged().data();
  // The lowest two bits count as zero (section 4.2). An ULPDU beyond the 64768 bytes of section 3 can put a marker
  // farther from its FPDU's start than 16 bits can say; then the lower 16 bits are compared.
  auto pointer = [&](size_t marker) { return LengthField(frame + marker + 2) & ~size_t{3}; };
  if (lead != 0 && pointer(0) != 0) return false;
  for (size_t at = kMarkerInterval - position_ % kMarkerInterval; at < total; at += kMarkerInterval) {
    if (pointer(at) != ((at - lead) & 0xffff)) return false;
  }
  return true;
}

bool FpduReceiver::DeliverWhole(size_t lead, size_t length, size_t total) {
  if (total != lead + FpduLength(length)) return DeliverAroundMarkers(lead, length);
  const ByteSpan ulpdu = staged().subspan(lead + kLengthFieldLength, length);
  llp::UlpduPlan plan;
  const size_t head_length = std::min(length, llp::kUlpduHeadLength);
  if (!sink_.Begin(length, ulpdu.first(head_length), &plan)) return false;
  WEFT_CHECK(plan.header_length <= head_length);
  if (plan.discard) return PlaceDeferred() && sink_.End();
  if (Defer(ulpdu, plan) || PlaceWithDeferred(ulpdu, plan)) return sink_.End();
  if (!PlaceDeferred()) return false;
  placement_.Start(plan.payload, plan.ours);
  if (!placement_.Copy(ulpdu.subspan(plan.header_length))) sink_.OnUnplaceable();
  return sink_.End();
}

bool FpduReceiver::DeliverAroundMarkers(size_t lead, size_t length) {
  const ByteSpan bytes = staged();
  size_t at = lead + kLengthFieldLength;
  // The next stretch of at most `limit` ULPDU bytes with no marker in it.
  auto next = [&](size_t limit) {
    size_t to_marker = kMarkerInterval - (position_ + at) % kMarkerInterval;
    if (to_marker == kMarkerInterval) {
      at += kMarkerLength;
      to_marker = kMarkerInterval - kMarkerLength;
    }
    const ByteSpan stretch = bytes.subspan(at, std::min(limit, to_marker));
    at += stretch.size();
    return stretch;
  };

  std::array<uint8_t, llp::kUlpduHeadLength> head;
  const size_t head_length = std::min(length, llp::kUlpduHeadLength);
  for (size_t have = 0; have < head_length;) {
    const ByteSpan stretch = next(head_length - have);
    std::memcpy(head.data() + have, stretch.data(), stretch.size());
    have += stretch.size();
  }
  llp::UlpduPlan plan;
  if (!sink_.Begin(length, ByteSpan(head).first(head_length), &plan)) return false;
  WEFT_CHECK(plan.header_length <= head_length);
  if (!PlaceDeferred()) return false;
  if (plan.discard) return sink_.End();
  placement_.Start(plan.payload, plan.ours);
  bool placed = placement_.Copy(ByteSpan(head).first(head_length).subspan(plan.header_length));
  for (size_t left = length - head_length; left != 0;) {
    const ByteSpan stretch = next(left);
    placed = placed && placement_.Copy(stretch);
    left -= stretch.size();
  }
  if (!placed) sink_.OnUnplaceable();
  return sink_.End();
}

}  // namespace weft::mpa
