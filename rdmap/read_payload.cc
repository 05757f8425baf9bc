#include "rdmap/read_payload.h"

#include <sys/uio.h>

#include <algorithm>

#include "base/program_memory.h"

namespace weft::rdmap {

Result<ReadPayload::Source, AccessError> ReadPayload::Find(uint32_t left, bool alone) {
  if (used_ == copied_) {
    const auto memory = Resolve(reads_.front().header, left);
    if (!memory) return memory.error();
    if (!ThreadOfOurs()) return Source{*memory, /*ours=*/false};
    if (left > kShort) {
      if (looked_ == 0) looked_ = Look(*memory, left, alone);
      if (looked_ == 0) return AccessError::kBounds;
      --looked_;
      return Source{*memory, /*ours=*/false};
    }
    Copy(*memory, left, alone);
    if (copied_ == 0) return AccessError::kBounds;
  }
  uint8_t* const bytes = copies_.data() + used_;
  used_ = static_cast<uint16_t>(used_ + left);
  return Source{bytes, /*ours=*/true};
}

Result<uint8_t*, AccessError> ReadPayload::Resolve(const ReadRequestHeader& read, uint32_t left) {
  const uint32_t done = read.length - left;
  return host_.Resolve(read.source_stag, ddp::TaggedOffset(read.source_offset.value + done), left, Access::kRemoteRead);
}

void ReadPayload::Copy(uint8_t* oldest, uint32_t left, bool alone) {
  std::array<iovec, kMost> pieces;  // NOLINT: filled here
  pieces[0] = {oldest, left};
  size_t count = 1, bytes = left;
  for (uint32_t i = 1; !alone && i < reads_.size() && count != kMost; ++i) {
    const InboundRead& read = reads_[i];
    if (read.is_atomic || read.header.length == 0) continue;  // nothing is read for them
    if (read.header.length > std::min<size_t>(kShort, kBytes - bytes)) break;
    const auto memory = Resolve(read.header, read.header.length);
    if (!memory) break;  // its turn comes
    pieces[count++] = {*memory, read.header.length};
    bytes += read.header.length;
  }
  const size_t whole = GatherProgramMemory(copies_.data(), {pieces.data(), count});
  copied_ = used_ = 0;
  for (size_t i = 0; i < whole; ++i) copied_ = static_cast<uint16_t>(copied_ + pieces[i].iov_len);
}

uint16_t ReadPayload::Look(uint8_t* oldest, uint32_t left, bool alone) {
  std::array<iovec, kMost> pieces;  // NOLINT: filled here
  pieces[0] = {oldest, std::min(left, kLookedAhead)};
  uint16_t count = 1;
  size_t bytes = pieces[0].iov_len;
  for (uint32_t i = 1; !alone && i < reads_.size() && count != kMost; ++i) {
    const InboundRead& read = reads_[i];
    if (read.is_atomic || read.header.length == 0) continue;
    if (read.header.length <= kShort || read.header.length > kLookedAhead - bytes) break;
    const auto memory = Resolve(read.header, read.header.length);
    if (!memory) break;
    pieces[count++] = {*memory, read.header.length};
    bytes += read.header.length;
  }
  if (IsProgramMemory({pieces.data(), count})) return count;
  return count != 1 && IsProgramMemory({pieces.data(), 1}) ? 1 : 0;
}

}  // namespace weft::rdmap
