#include "mpi_hybrid/rma/parcel.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "base/file_limit.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {
namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);
constexpr size_t kLeastPage = 4096;  // of a kernel; kShort is a multiple
constexpr size_t kMostRecord = kLengthBytes + kSlotBytes;
constexpr size_t kBuffer = 4 * kMostRecord;  // of either side
constexpr size_t kFirstBuffer = kMostRecord;  // stays with a parcel that is empty

// Visits the whole messages at the front of `bytes`; how many bytes they are. Nothing: `visit` said false, or what is there is no message.
std::optional<size_t> VisitWhole(ByteSpan bytes, const Parcel::Visit& visit) {
  size_t at = 0;
  while (bytes.size() - at >= kLengthBytes) {
    uint32_t length;
    std::memcpy(&length, bytes.data() + at, sizeof length);
    if (length == 0 || length > kSlotBytes) return {};
    if (length > bytes.size() - at - kLengthBytes) break;
    if (!visit(bytes.subspan(at + kLengthBytes, length))) return {};
    at += kLengthBytes + length;
  }
  return at;
}

bool WriteAll(int fd, const uint8_t* from, size_t bytes, uint64_t offset) {
  while (bytes > 0) {
    const ssize_t written = pwrite(fd, from, bytes, static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    from += written;
    bytes -= static_cast<size_t>(written);
    offset += static_cast<uint64_t>(written);
  }
  return true;
}

bool ReadByCalls(int memory, uint64_t offset, uint64_t bytes, const Parcel::Visit& visit) {
  if (bytes > Parcel::kMost || offset > INT64_MAX - bytes) return false;
  const size_t room = std::min<size_t>(bytes, kBuffer);
  const auto buffer = std::make_unique_for_overwrite<uint8_t[]>(room);
  size_t have = 0;
  while (bytes > 0) {
    const size_t wanted = std::min<size_t>(bytes, room - have);
    const ssize_t got = pread(memory, buffer.get() + have, wanted, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    offset += static_cast<uint64_t>(got);
    bytes -= static_cast<uint64_t>(got);
    have += static_cast<size_t>(got);
    const std::optional<size_t> whole = VisitWhole({buffer.get(), have}, visit);
    if (!whole) return false;
    have -= *whole;
    std::memmove(buffer.get(), buffer.get() + *whole, have);
  }
  return have == 0;
}

}  // namespace

Parcel::~Parcel() {
  Clear(/*handed_over=*/false);
  Returned();
}

void Parcel::GiveBack() {
  if (offset_) segment_.Discard(*offset_, kMost);
}

uint8_t* Parcel::Begin() {
  if (kMostRecord > kMost - in_use_) return nullptr;
  if (buffer_.size() - filled_ < kMostRecord) {
    if (buffer_.size() < kBuffer) {
      buffer_.resize(buffer_.empty() ? kFirstBuffer : kBuffer);
    } else if (!Flush()) {
      return nullptr;
    }
  }
  return buffer_.data() + filled_ + kLengthBytes;
}

void Parcel::End(size_t message_bytes) {
  const auto length = static_cast<uint32_t>(message_bytes);
  std::memcpy(buffer_.data() + filled_, &length, sizeof length);
  filled_ += kLengthBytes + message_bytes;
  bytes_ += kLengthBytes + message_bytes;
  in_use_ += kLengthBytes + message_bytes;
}

// By a call, which says that there is no memory; touching what is mapped would be a signal then.
bool Parcel::Flush() {
  if (filled_ == 0) return true;
  if (bytes_ == filled_ && bytes_ <= made_) {
    std::memcpy(start_.data(), buffer_.data(), std::exchange(filled_, 0));
    return true;
  }
  if (!offset_) offset_ = segment_.Reserve(kMost);
  if (!offset_ || !MayMakeFile(*offset_ + bytes_)) return false;
  if (!WriteAll(segment_.memory_descriptor(), buffer_.data(), filled_, *offset_ + bytes_ - filled_)) return false;
  filled_ = 0;
  made_ = 0;
  if (bytes_ <= std::min(kShort, kept_)) {
    if (!start_) start_ = segment_.Map(*offset_, kShort);
    // Not more than is kept: the target frees the pages of a longer one.
    if (start_) made_ = std::min((bytes_ + kLeastPage - 1) / kLeastPage * kLeastPage, kept_);
  }
  return true;
}

bool Parcel::Seal() { return Flush(); }

bool Parcel::ForEach(const Visit& visit) const {
  const size_t flushed = bytes_ - filled_;
  if (flushed != 0 && !ReadByCalls(segment_.memory_descriptor(), *offset_, flushed, visit)) return false;
  return VisitWhole({buffer_.data(), filled_}, visit) == filled_;
}

void Parcel::Clear(bool handed_over) {
  if (handed_over) {
    handed_over_ = bytes_;
  } else {
    in_use_ -= bytes_;
  }
  bytes_ = filled_ = 0;
  if (buffer_.size() > kFirstBuffer) std::vector<uint8_t>().swap(buffer_);
}

void Parcel::Returned() {
  in_use_ -= handed_over_;
  handed_over_ = 0;
}

bool ParcelReader::Read(const host::Segment& segment, uint64_t offset, uint64_t bytes, const Parcel::Visit& visit) {
  if (bytes > Parcel::kShort) return ReadByCalls(segment.memory_descriptor(), offset, bytes, visit);
  if (!start_ || offset_ != offset) {
    start_ = segment.Map(offset, Parcel::kShort);
    offset_ = offset;
  }
  if (!start_) return ReadByCalls(segment.memory_descriptor(), offset, bytes, visit);
  const auto copy = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  std::memcpy(copy.get(), start_.data(), bytes);
  return VisitWhole({copy.get(), static_cast<size_t>(bytes)}, visit) == bytes;
}

}  // namespace weft::mpi::rma
