#include "rdmap/testing/fake_host.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace weft::rdmap::testing {

Bytes FakeHost::Receive::Joined(size_t length) const {
  Bytes joined;
  for (const Bytes& piece : pieces) {
    const size_t part = std::min(piece.size(), length - joined.size());
    joined.insert(joined.end(), piece.begin(), piece.begin() + part);
  }
  return joined;
}

FakeHost::Region& FakeHost::AddRegion(ddp::STag stag, uint64_t base, size_t size, Rights rights) {
  regions_.push_back({stag, base, Bytes(size), rights, true, 0, nullptr});
  return regions_.back();
}

FakeHost::Region* FakeHost::FindRegion(ddp::STag stag) {
  for (Region& region : regions_) {
    if (region.stag == stag && region.valid) return &region;
  }
  return nullptr;
}

void FakeHost::PostReceive(const std::vector<size_t>& pieces) {
  Receive receive;
  for (size_t size : pieces) receive.pieces.emplace_back(size);
  for (Bytes& piece : receive.pieces) receive.memory.push_back({piece.data(), piece.size()});
  receives_.push_back(std::move(receive));
}

FakeHost::Posted& FakeHost::Post(Request request, const Bytes& payload, const std::vector<size_t>& pieces) {
  Posted& posted = posted_.emplace_back();
  posted.id = static_cast<int>(posted_.size()) - 1;
  size_t at = 0;
  for (size_t size : pieces) {
    size = std::min(size, payload.size() - at);
    posted.pieces.emplace_back(payload.begin() + at, payload.begin() + at + size);
    at += size;
  }
  posted.pieces.emplace_back(payload.begin() + at, payload.end());
  for (Bytes& piece : posted.pieces) posted.memory.push_back({piece.data(), piece.size()});
  posted.request = request;
  posted.request.local = posted.memory;
  posted.request.length = static_cast<uint32_t>(payload.size());
  return posted;
}

FakeHost::Posted& FakeHost::PostRead(ddp::STag source, uint64_t source_offset, uint32_t length, ddp::STag sink,
                                     uint64_t sink_offset, bool fence) {
  Posted& posted = posted_.emplace_back();
  posted.id = static_cast<int>(posted_.size()) - 1;
  Request& request = posted.request;
  request.opcode = Opcode::kReadRequest;
  request.fence = fence;
  request.length = length;
  request.remote_stag = source;
  request.remote_offset = ddp::TaggedOffset(source_offset);
  request.sink_stag = sink;
  request.sink_offset = ddp::TaggedOffset(sink_offset);
  // For streams that scatter, where the region has it: in two pieces.
  if (Region* region = FindRegion(sink);
      region != nullptr && sink_offset >= region->base && sink_offset - region->base + length <= region->bytes.size()) {
    uint8_t* const at = region->bytes.data() + (sink_offset - region->base);
    posted.memory = {{at, length / 2}, {at + length / 2, length - length / 2}};
    request.local = posted.memory;
  }
  return posted;
}

Result<uint8_t*, AccessError> FakeHost::Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length,
                                                Access access) {
  ++resolved;
  WEFT_CHECK(length != 0);
  Region* region = FindRegion(stag);
  if (region == nullptr) return AccessError::kInvalidStag;
  if (!region->rights.associated || (region->target != 0 && region->target != target_)) return AccessError::kStagNotAssociated;
  const bool allowed = access == Access::kRemoteWrite  ? region->rights.remote_write
                       : access == Access::kRemoteRead ? region->rights.remote_read
                                                       : region->rights.sink;
  if (!allowed) return AccessError::kAccessRights;
  const uint64_t at = offset.value - region->base;
  if (offset.value < region->base || at > region->bytes.size() || length > region->bytes.size() - at) {
    return AccessError::kBounds;
  }
  return (region->elsewhere != nullptr ? region->elsewhere : region->bytes.data()) + at;
}

std::optional<ReceiveTarget> FakeHost::TakeReceive(uint64_t needed) {
  if (receives_taken == receives_.size()) return std::nullopt;
  Receive& receive = receives_[receives_taken++];
  ReceiveTarget target{receive.memory, 0, 0};
  for (iovec& piece : receive.memory) {
    target.length += piece.iov_len;
    piece.iov_base = nullptr;  // until it is needed
  }
  target.usable = ExtendReceive(std::min(needed, target.length));
  if (target.usable < std::min(needed, target.length)) return std::nullopt;
  return target;
}

uint64_t FakeHost::ExtendReceive(uint64_t needed) {
  Receive& receive = receives_[receives_taken - 1];
  uint64_t usable = 0;
  for (size_t i = 0; i < receive.pieces.size() && usable < needed; ++i) {
    if (i >= good_pieces) return usable;
    receive.memory[i].iov_base = receive.pieces[i].data();
    usable += receive.pieces[i].size();
  }
  return usable;
}

void FakeHost::Received(const ReceivedSend& message) {
  WEFT_CHECK(receives_taken != 0);
  arrivals.push_back({receives_taken - 1, message, receives_[receives_taken - 1].Joined(message.length), target_});
}

std::optional<AccessError> FakeHost::Invalidate(ddp::STag stag) {
  Region* region = FindRegion(stag);
  if (region == nullptr) return AccessError::kInvalidStag;
  if (!region->rights.associated) return AccessError::kStagNotAssociated;
  if (!region->rights.can_invalidate) return AccessError::kAccessRights;
  region->valid = false;
  return std::nullopt;
}

Request* FakeHost::NextRequest() { return next_request_ == posted_.size() ? nullptr : &posted_[next_request_].request; }

int FakeHost::IdOf(const Request& request) const {
  for (const Posted& posted : posted_) {
    if (&posted.request == &request) return posted.id;
  }
  WEFT_CHECK(false);
}

void FakeHost::Started(Request& request) {
  WEFT_CHECK(&request == NextRequest());
  started.push_back(static_cast<int>(next_request_++));
}

void FakeHost::Sent(Request& request) { sent.push_back(IdOf(request)); }

Result<uint64_t, AccessError> FakeHost::Atomic(ddp::STag stag, ddp::TaggedOffset offset, const AtomicOperation& operation) {
  if (offset.value % sizeof(uint64_t) != 0) return AccessError::kMisaligned;  // its regions begin at aligned offsets
  const auto memory = Resolve(stag, offset, sizeof(uint64_t), Access::kRemoteWrite);
  if (!memory) return memory.error();
  uint64_t value;
  std::memcpy(&value, *memory, sizeof(value));
  const uint64_t original = value;
  if (operation.code == AtomicCode::kFetchAdd) value += operation.add_or_swap;
  if (operation.code == AtomicCode::kCompareSwap && value == operation.compare) value = operation.add_or_swap;
  std::memcpy(*memory, &value, sizeof(value));
  return original;
}

void FakeHost::ReceiverNotReady(Request& request, uint8_t) {
  WEFT_CHECK(!not_ready);
  not_ready = true;
  ++refusals;
  next_request_ = static_cast<size_t>(IdOf(request));
  started.resize(next_request_);
}

void FakeHost::ReadDone(Request& request) { reads_done.push_back(IdOf(request)); }

}  // namespace weft::rdmap::testing
