#include "mpa/fpdu_sender.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <new>
#include <type_traits>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/dma_scope.h"
#include "base/iovec_length.h"
#include "base/program_memory.h"
#include "mpa/fpdu_layout.h"

namespace weft::mpa {
namespace {

// Up to here a copy costs less than another piece in the gather list does, here and in the kernel.
constexpr size_t kShortPayload = 512;
// A payload in more pieces than this is copied, so that an empty sender has room for every ULPDU.
constexpr size_t kMaxReferencedPieces = 32;
static_assert(kMaxReferencedPieces + 2 <= FpduSender::kMaxPieces);

void StoreLength(uint8_t* at, size_t ulpdu_length) {
  at[0] = static_cast<uint8_t>(ulpdu_length >> 8);
  at[1] = static_cast<uint8_t>(ulpdu_length);
}

// Writes stream bytes and puts the markers between them where they are due.
class MarkedWriter {
 public:
  MarkedWriter(uint8_t* at, uint64_t position) : at_(at), position_(position) {
    MarkerIfDue();  // before the length field, it points nowhere: FPDUPTR 0
    fpdu_start_ = position_;
  }

  void MarkerIfDue() {
    if (position_ % kMarkerInterval != 0) return;
    // Zero for a marker between FPDUs, which the constructor writes before fpdu_start_ is set.
    const uint64_t pointer = fpdu_start_ == kNoFpdu ? 0 : position_ - fpdu_start_;
    const uint8_t marker[kMarkerLength] = {0, 0, static_cast<uint8_t>(pointer >> 8), static_cast<uint8_t>(pointer)};
    std::memcpy(at_, marker, kMarkerLength);
    Moved(kMarkerLength);
  }

  void Put(const void* from, size_t count) {
    const uint8_t* bytes = static_cast<const uint8_t*>(from);
    while (count != 0) {
      MarkerIfDue();
      const size_t stretch = std::min<size_t>(count, kMarkerInterval - position_ % kMarkerInterval);
      std::memcpy(at_, bytes, stretch);
      Moved(stretch);
      bytes += stretch;
      count -= stretch;
    }
  }

  uint8_t* at() const { return at_; }

 private:
  static constexpr uint64_t kNoFpdu = ~uint64_t{0};

  void Moved(size_t count) {
    at_ += count;
    position_ += count;
  }

  uint8_t* at_;
  uint64_t position_;
  uint64_t fpdu_start_ = kNoFpdu;
};

}  // namespace

FpduSender::FpduSender(const Options& options, BufferPool& pool)
    : crc_(options.crc),
      markers_(options.markers),
      max_ulpdu_(std::clamp(options.max_ulpdu, kMinMulpdu, kMaxMulpdu)),
      pool_(pool) {}

size_t FpduSender::max_ulpdu() const { return max_ulpdu_; }
uint64_t FpduSender::appended() const { return appended_; }
uint64_t FpduSender::consumed() const { return consumed_; }
bool FpduSender::empty() const { return count_ == 0; }

std::span<const iovec> FpduSender::Pending() {
  Fill();
  return {pieces_.data(), count_};
}

bool FpduSender::References(size_t payload_length, size_t payload_pieces) const {
  return !crc_ && !markers_ && payload_pieces <= kMaxReferencedPieces &&
         payload_length > kShortPayload * payload_pieces;
}

bool FpduSender::HasRoom(size_t payload_length, size_t payload_pieces) const {
  // Whether the payload is volatile is not known here, so there has to be room for a copy.
  const size_t ulpdu_length = llp::kUlpduHeadLength + payload_length;
  size_t bytes = FpduLength(ulpdu_length) + 3;  // a shorter header may need more PAD
  if (markers_) bytes += kMarkerLength * (2 + bytes / (kMarkerInterval - kMarkerLength));
  const size_t pieces = References(payload_length, payload_pieces) ? payload_pieces + 2 : 1;
  return count_ + pieces <= kMaxPieces && Fits(bytes) && !payload_gone_;
}

bool FpduSender::Fits(size_t bytes) const {
  if (wrapped_) return tail_ - head_ >= bytes;
  return kRoom - head_ >= bytes || tail_ >= bytes;
}

// Contiguous staging at head_, which moves only when AddStaged says what was used.
uint8_t* FpduSender::Reserve(size_t bytes) {
  if (!staging_) staging_ = pool_.Take();
  if (!wrapped_ && kRoom - head_ < bytes) {
    WEFT_CHECK(tail_ >= bytes);
    head_ = 0;
    wrapped_ = true;
  }
  WEFT_CHECK((wrapped_ ? tail_ : kRoom) - head_ >= bytes);
  return staging_.data() + head_;
}

bool FpduSender::IsStaged(const void* at) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(at);
  const uintptr_t block = reinterpret_cast<uintptr_t>(staging_.data());
  return address >= block && address - block < BufferPool::kBlockSize;
}

void FpduSender::AddStaged(uint8_t* from, size_t count) {
  head_ = static_cast<size_t>(from - staging_.data()) + count;
  if (count_ != 0) {
    iovec& last = pieces_[count_ - 1];
    if (static_cast<uint8_t*>(last.iov_base) + last.iov_len == from && IsStaged(last.iov_base)) {
      last.iov_len += count;  // a run of short FPDUs is one piece
      return;
    }
  }
  WEFT_CHECK(count_ < kMaxPieces);
  pieces_[count_++] = {from, count};
}

void FpduSender::Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) {
  const size_t payload_length = TotalLength(payload);
  const size_t ulpdu_length = header.size() + payload_length;
  WEFT_CHECK(header.size() <= llp::kUlpduHeadLength && ulpdu_length != 0 && ulpdu_length <= max_ulpdu_);
  if (markers_) {
    AppendMarked(header, payload, payload_length, volatile_payload);
  } else if (!volatile_payload && References(payload_length, payload.size())) {
    AppendReferenced(header, payload, payload_length);
  } else {
    AppendPlain(header, payload, payload_length, volatile_payload);
  }
}

void FpduSender::AppendPlain(ByteSpan header, std::span<const iovec> payload, size_t payload_length, bool volatile_payload) {
  const size_t ulpdu_length = header.size() + payload_length;
  const size_t length = FpduLength(ulpdu_length);
  uint8_t* const frame = Reserve(length);
  StoreLength(frame, ulpdu_length);
  std::copy(header.begin(), header.end(), frame + kLengthFieldLength);
  uint8_t* at = frame + kLengthFieldLength + header.size();

  // Both ways the checksum is of the copy: the program may be changing the payload under our hands. Long pieces are
  // checksummed while they are copied, short ones with all around them in one go.
  uint32_t crc = 0;
  uint8_t* checked = frame;
  if (ThreadOfOurs() && !volatile_payload && payload_length != 0) {  // what is volatile is ours
    AppendUnfilled(frame, ulpdu_length, at, payload);
    AddStaged(frame, length);
    appended_ += length;
    return;
  }
  const DmaScope dma;
  for (const iovec& piece : payload) {
    if (piece.iov_len == 0) continue;
    if (crc_ && piece.iov_len > kShortPayload) {
      crc = Crc32cExtend(crc, {checked, at});
      crc = Crc32cCopy(crc, at, static_cast<const uint8_t*>(piece.iov_base), piece.iov_len);
      checked = at + piece.iov_len;
    } else {
      std::memcpy(at, piece.iov_base, piece.iov_len);
    }
    at += piece.iov_len;
  }
  Finish(frame, ulpdu_length, crc, checked);
  AddStaged(frame, length);
  appended_ += length;
}

void FpduSender::Finish(uint8_t* frame, size_t ulpdu_length, uint32_t crc, const uint8_t* checked) {
  uint8_t* const pad = frame + kLengthFieldLength + ulpdu_length;
  uint8_t* const field = pad + PadLength(ulpdu_length);
  std::fill(pad, field, uint8_t{0});
  StoreCrc32c(field, crc_ ? Crc32cExtend(crc, {checked, field}) : 0);
}

void FpduSender::AppendUnfilled(uint8_t* frame, size_t ulpdu_length, uint8_t* at, std::span<const iovec> payload) {
  static_assert(kRoom % alignof(Unfilled) == 0 && std::is_trivially_destructible_v<Unfilled>);
  if (unfilled_ == nullptr) unfilled_ = new (staging_.data() + kRoom) Unfilled;
  while (!payload.empty()) {
    if (unfilled_->count == Unfilled::kMost || unfilled_->pieces == Unfilled::kMostPieces) Fill();
    const std::span<const iovec> some = payload.first(std::min(payload.size(), Unfilled::kMostPieces - unfilled_->pieces));
    payload = payload.subspan(some.size());
    std::ranges::copy(some, unfilled_->from.begin() + static_cast<ptrdiff_t>(unfilled_->pieces));
    unfilled_->pieces += some.size();
    // The last pieces complete it.
    unfilled_->frames[unfilled_->count] = {payload.empty() ? frame : nullptr, ulpdu_length};
    unfilled_->to[unfilled_->count++] = {at, TotalLength(some)};
    at += TotalLength(some);
  }
}

void FpduSender::Fill() {
  if (unfilled_ == nullptr || unfilled_->count == 0) [[likely]]
    return;
  const size_t count = std::exchange(unfilled_->count, 0), pieces = std::exchange(unfilled_->pieces, 0);
  if (payload_gone_) return;
  if (!GatherFromProgramMemory({unfilled_->to.data(), count}, {unfilled_->from.data(), pieces})) {
    payload_gone_ = true;
    return;
  }
  for (const Unfilled::Frame& frame : std::span(unfilled_->frames).first(count)) {
    if (frame.at != nullptr) Finish(frame.at, frame.ulpdu_length, 0, frame.at);
  }
}

// The length and header, the payload where it lies, PAD and CRC field; the last and the next FPDU's first make one
// piece.
void FpduSender::AppendReferenced(ByteSpan header, std::span<const iovec> payload, size_t payload_length) {
  const size_t ulpdu_length = header.size() + payload_length;
  const size_t front = kLengthFieldLength + header.size();
  const size_t back = PadLength(ulpdu_length) + kCrcLength;
  uint8_t* const frame = Reserve(front + back);
  StoreLength(frame, ulpdu_length);
  std::copy(header.begin(), header.end(), frame + kLengthFieldLength);
  AddStaged(frame, front);
  for (const iovec& piece : payload) {
    if (piece.iov_len == 0) continue;
    WEFT_CHECK(count_ < kMaxPieces);
    pieces_[count_++] = piece;
  }
  std::memset(frame + front, 0, back);
  AddStaged(frame + front, back);
  appended_ += FpduLength(ulpdu_length);
}

void FpduSender::AppendMarked(ByteSpan header, std::span<const iovec> payload, size_t payload_length, bool volatile_payload) {
  const size_t ulpdu_length = header.size() + payload_length;
  const uint64_t start = appended_ + (appended_ % kMarkerInterval == 0 ? kMarkerLength : 0);
  const size_t length = static_cast<size_t>(start - appended_) + FpduLength(ulpdu_length) +
                        kMarkerLength * MarkersInside(start, FpduLength(ulpdu_length));
  uint8_t* const frame = Reserve(length);
  MarkedWriter writer(frame, appended_);
  uint8_t length_field[kLengthFieldLength];
  StoreLength(length_field, ulpdu_length);
  writer.Put(length_field, sizeof(length_field));
  writer.Put(header.data(), header.size());
  if (ThreadOfOurs() && !volatile_payload) {
    const BufferPool::Lease copy = pool_.Take();
    if (GatherProgramMemory(copy.data(), payload) != payload.size()) {
      payload_gone_ = true;
      return;
    }
    writer.Put(copy.data(), payload_length);
  } else {
    const DmaScope dma;
    for (const iovec& piece : payload) writer.Put(piece.iov_base, piece.iov_len);
  }
  constexpr uint8_t kZeros[4] = {};
  writer.Put(kZeros, PadLength(ulpdu_length));
  writer.MarkerIfDue();  // between PAD and CRC it is covered by the CRC (section 4.4)
  uint8_t crc[kCrcLength];
  StoreCrc32c(crc, crc_ ? Crc32c({frame, writer.at()}) : 0);
  writer.Put(crc, sizeof(crc));
  WEFT_CHECK(writer.at() == frame + length);
  AddStaged(frame, length);
  appended_ += length;
}

void FpduSender::Consume(size_t count) {
  consumed_ += count;
  WEFT_CHECK(consumed_ <= appended_);
  size_t gone = 0;
  while (count != 0) {
    iovec& piece = pieces_[gone];
    const size_t step = std::min(count, piece.iov_len);
    uint8_t* const from = static_cast<uint8_t*>(piece.iov_base);
    if (IsStaged(from)) {
      const size_t offset = static_cast<size_t>(from - staging_.data());
      if (offset < tail_) wrapped_ = false;  // the bytes before the wrap are all out
      tail_ = offset + step;
    }
    piece = {from + step, piece.iov_len - step};
    count -= step;
    if (piece.iov_len == 0) ++gone;
  }
  count_ -= gone;
  std::copy_n(pieces_.begin() + gone, count_, pieces_.begin());
  if (count_ == 0) {
    staging_.Reset();
    unfilled_ = nullptr;
    head_ = tail_ = 0;
    wrapped_ = false;
    taken_over_.clear();
  }
}

void FpduSender::TakeOver(const void* begin, size_t length, Copy copy) {
  Fill();
  const std::span<iovec> pending = std::span(pieces_).first(count_);
  std::erase_if(taken_over_, [pending](const std::vector<uint8_t>& own) {
    return std::ranges::none_of(pending, [&own](const iovec& piece) {
      const auto* at = static_cast<const uint8_t*>(piece.iov_base);
      return std::greater_equal()(at, own.data()) && std::less()(at, own.data() + own.size());
    });
  });
  const auto first = reinterpret_cast<uintptr_t>(begin);
  for (iovec& piece : pending) {
    const auto at = reinterpret_cast<uintptr_t>(piece.iov_base);
    const bool overlaps = at < first ? first - at < piece.iov_len : at - first < length;
    if (!overlaps || IsStaged(piece.iov_base)) continue;
    std::vector<uint8_t> own(piece.iov_len);
    if (!copy(own.data(), static_cast<const uint8_t*>(piece.iov_base), piece.iov_len)) payload_gone_ = true;
    piece.iov_base = own.data();
    taken_over_.push_back(std::move(own));
  }
}

}  // namespace weft::mpa
