#include "mpi_hybrid/survive/ballot.h"

#include <bit>

namespace weft::mpi::survive {

int RankSet::Count() const {
  int count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
}

void RankSet::AddAll(const RankSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
}

void RankSet::Remove(const RankSet& other) {
  for (size_t i = 0; i < words_.size(); ++i) words_[i] &= ~other.words_[i];
}

bool RankSet::HasAll(const RankSet& other) const {
  for (size_t i = 0; i < words_.size(); ++i) {
    if ((other.words_[i] & ~words_[i]) != 0) return false;
  }
  return true;
}

int RankSet::FirstMissing() const {
  int rank = 0;
  while (rank < size_ && Has(rank)) ++rank;
  return rank;
}

bool RankSet::Assign(const std::vector<uint64_t>& words) {
  if (words.size() != words_.size()) return false;
  if (size_ % 64 != 0 && words.back() >> size_ % 64 != 0) return false;
  words_ = words;
  return true;
}

void Ballot::Count(int rank, const std::vector<uint64_t>& put_in) {
  Ballot one{.words = put_in, .voters = RankSet(voters.size())};
  one.voters.Add(rank);
  Merge(one);
}

void Ballot::Merge(const Ballot& other) {
  if (other.voters.Count() == 0) return;
  if (voters.Count() == 0) words = other.words;
  if (words.size() != other.words.size()) words.clear();
  for (size_t i = 0; i < words.size(); ++i) words[i] &= other.words[i];
  voters.AddAll(other.voters);
}

}  // namespace weft::mpi::survive
