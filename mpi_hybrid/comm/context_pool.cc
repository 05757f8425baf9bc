#include "mpi_hybrid/comm/context_pool.h"

#include <bit>
#include <utility>

namespace weft::mpi {
namespace {

// Words of ids in an attempt; every fourth has them all, so that the last free id is found.
constexpr std::array<size_t, 4> kAttemptWords = {1, 8, 64, ContextPool::kWords};

constexpr uint32_t kMostAttempts = 256;

size_t CountBits(std::span<const uint64_t> words) {
  size_t count = 0;
  for (uint64_t word : words) count += static_cast<size_t>(std::popcount(word));
  return count;
}

uint64_t Mix(uint64_t x) {  // the finalizer of MurmurHash3
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

}  // namespace

ContextPool::ContextPool() {
  free_.fill(~uint64_t{0});
  free_[0] &= ~uint64_t{0} << kFirstFree;
}

bool ContextPool::Propose(size_t first, std::span<uint64_t> mask) {
  for (size_t i = 0; i < mask.size(); ++i) {
    uint64_t& word = free_[(first + i) % kWords];
    mask[i] = word;
    word = 0;
  }
  const bool undisturbed = proposed_ == 0;
  proposed_ += CountBits(mask);
  return undisturbed;
}

void ContextPool::Settle(size_t first, std::span<const uint64_t> proposed, std::span<const uint32_t> taken) {
  proposed_ -= CountBits(proposed);
  for (size_t i = 0; i < proposed.size(); ++i) free_[(first + i) % kWords] |= proposed[i];
  for (uint32_t id : taken) {
    WEFT_CHECK(IsFree(id));
    free_[id / 64] &= ~(uint64_t{1} << id % 64);
  }
}

void ContextPool::Release(uint32_t id) {
  WEFT_CHECK(id >= kFirstFree && id < kWords * 64 && !IsFree(id));
  free_[id / 64] |= uint64_t{1} << id % 64;
}

std::optional<uint32_t> ContextPool::Take() {
  for (size_t word = 0; word < kWords; ++word) {
    if (free_[word] == 0) continue;
    const int bit = std::countr_zero(free_[word]);
    free_[word] &= free_[word] - 1;
    return static_cast<uint32_t>(word * 64) + static_cast<uint32_t>(bit);
  }
  return std::nullopt;
}

bool ContextPool::IsFree(uint32_t id) const { return (free_[id / 64] >> id % 64 & 1) != 0; }

ContextPool& TheContextPool() {
  static auto& pool = *new ContextPool;
  return pool;
}

ContextSearch::~ContextSearch() {
  if (!proposed_.empty()) pool_.Settle(first_, proposed_, {});
}

std::span<uint64_t> ContextSearch::Begin(uint64_t flags) {
  WEFT_CHECK(proposed_.empty() && ids_.empty());
  first_ = Mix(seed_ + Mix(attempt_)) % ContextPool::kWords;
  proposed_.resize(kAttemptWords[attempt_ % kAttemptWords.size()]);
  const bool undisturbed = pool_.Propose(first_, proposed_);
  reduced_ = proposed_;
  reduced_.push_back((flags & ~kUndisturbed) | (undisturbed ? kUndisturbed : 0));
  return reduced_;
}

ContextSearch::Outcome ContextSearch::End() {
  std::vector<uint32_t> found;
  for (size_t i = 0; i < proposed_.size() && found.size() < wanted_; ++i) {
    for (uint64_t bits = reduced_[i] & proposed_[i]; bits != 0 && found.size() < wanted_; bits &= bits - 1) {
      found.push_back(
          static_cast<uint32_t>((first_ + i) % ContextPool::kWords * 64 + static_cast<size_t>(std::countr_zero(bits))));
    }
  }
  const bool agreed = found.size() == wanted_;
  const bool complete = proposed_.size() == ContextPool::kWords && (flags() & kUndisturbed) != 0;
  pool_.Settle(first_, proposed_, agreed ? std::span<const uint32_t>(found) : std::span<const uint32_t>());
  proposed_.clear();
  ++attempt_;
  if (!agreed) return complete || attempt_ == kMostAttempts ? Outcome::kExhausted : Outcome::kAgain;
  ids_ = std::move(found);
  return Outcome::kAgreed;
}

}  // namespace weft::mpi
