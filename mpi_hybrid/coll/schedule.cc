#include "mpi_hybrid/coll/schedule.h"

#include <algorithm>

#include "base/check.h"

namespace weft::mpi {
namespace {

constexpr size_t kAlignment = 64;
constexpr size_t kSmallestChunk = 4096;
// Of one idle schedule; above it memory goes back to the system.
constexpr size_t kMostKept = size_t{4} << 20;

size_t RoundUp(size_t value, size_t unit) { return (value + unit - 1) / unit * unit; }

}  // namespace

Schedule::Schedule() : bytes_(Datatype::Find(MPI_BYTE)) { WEFT_CHECK(bytes_ != nullptr); }

void Schedule::Send(const void* buffer, MPI_Aint count, const Datatype& type, int peer) {
  Step& step = steps_.emplace_back();
  step.kind = Step::Kind::kSend;
  step.local = local_;
  step.tag = tag_;
  step.peer = among_.empty() ? peer : among_[static_cast<size_t>(peer)];
  step.from = buffer;
  step.count = count;
  step.type = &type;
  open_ = true;
}

void Schedule::Receive(void* buffer, MPI_Aint count, const Datatype& type, int peer) {
  ReceiveAtMost(buffer, count, type, peer);
  steps_.back().exact = true;
}

void Schedule::ReceiveAtMost(void* buffer, MPI_Aint count, const Datatype& type, int peer) {
  Step& step = steps_.emplace_back();
  step.kind = Step::Kind::kReceive;
  step.local = local_;
  step.tag = tag_;
  step.peer = among_.empty() ? peer : among_[static_cast<size_t>(peer)];
  step.to = buffer;
  step.count = count;
  step.type = &type;
  open_ = true;
}

void Schedule::Copy(const void* from, MPI_Aint count, const Datatype& type, void* to, MPI_Aint to_count,
                    const Datatype& to_type) {
  if (count * type.size == 0) return;
  if (from == to && &type == &to_type) return;
  Step& step = steps_.emplace_back();
  step.kind = Step::Kind::kCopy;
  step.from = from;
  step.count = count;
  step.type = &type;
  step.to = to;
  step.to_count = to_count;
  step.to_type = &to_type;
}

void Schedule::Reduce(const void* in, void* inout, MPI_Aint count, const Datatype& type, const Op& op) {
  if (count == 0) return;
  Step& step = steps_.emplace_back();
  step.kind = Step::Kind::kReduce;
  step.from = in;
  step.to = inout;
  step.count = count;
  step.type = &type;
  step.op = &op;
}

void Schedule::UseOwnTags() {
  for (Step& step : steps_) step.tag = 0;
}

void Schedule::EndRound() {
  if (!open_) return;
  steps_.emplace_back();
  open_ = false;
}

uint8_t* Schedule::Temporary(MPI_Aint bytes) {
  const size_t needed = RoundUp(static_cast<size_t>(std::max<MPI_Aint>(bytes, 1)), kAlignment);
  if (chunks_.empty() || chunks_.back().size - used_ < needed) {
    const size_t size = RoundUp(std::max(needed + kAlignment, kSmallestChunk), kSmallestChunk);
    chunks_.push_back({std::unique_ptr<uint8_t[]>(new uint8_t[size]), size});
    used_ = 0;
    const size_t misaligned = reinterpret_cast<uintptr_t>(chunks_.back().memory.get()) % kAlignment;
    if (misaligned != 0) used_ = kAlignment - misaligned;
  }
  uint8_t* memory = chunks_.back().memory.get() + used_;
  used_ += needed;
  return memory;
}

uint8_t* Schedule::TemporaryFor(MPI_Aint count, const Datatype& type) {
  if (type.dense) return Temporary(count * type.size);
  constexpr MPI_Aint kElementAlignment = 16;
  MPI_Aint low = 0, high = 0;
  if (count > 0) MemorySpan(count, type, &low, &high);
  uint8_t* memory = Temporary(high - low + kElementAlignment);
  const auto shift = static_cast<MPI_Aint>(static_cast<uintptr_t>(low) % kElementAlignment);
  return memory + shift - low;  // memory is aligned, and so is shift - low
}

void Schedule::Keep(const Datatype* type) {
  if (type != nullptr && !type->builtin) types_.emplace_back(type);
}
void Schedule::Keep(const Op& op) {
  if (!op.builtin) ops_.emplace_back(&op);
}

void Schedule::Clear() {
  steps_.clear();
  open_ = false;
  local_ = false;
  among_ = {};
  tag_ = 0;
  types_.clear();
  ops_.clear();
  used_ = 0;
  if (chunks_.empty()) return;
  // The largest that is not too large serves the next collective, which is likely to be of the same size.
  auto kept = chunks_.end();
  for (auto chunk = chunks_.begin(); chunk != chunks_.end(); ++chunk) {
    if (chunk->size <= kMostKept && (kept == chunks_.end() || chunk->size > kept->size)) kept = chunk;
  }
  if (kept == chunks_.end()) {
    chunks_.clear();
    return;
  }
  std::swap(chunks_.front(), *kept);
  chunks_.resize(1);
  const size_t misaligned = reinterpret_cast<uintptr_t>(chunks_.front().memory.get()) % kAlignment;
  if (misaligned != 0) used_ = kAlignment - misaligned;
}

}  // namespace weft::mpi
