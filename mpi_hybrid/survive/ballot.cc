#include "mpi_hybrid/survive/ballot.h"

#include <bit>

namespace weft::mpi::survive {

int RankSet::Count() const {
  int count = 0;
  for (const uint64_t word : words_) count += std::popcount(word);
  return count;
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
  if (voters.Count() == 0) words = put_in;
  if (words.size() != put_in.size()) words.clear();
  for (size_t i = 0; i < words.size(); ++i) words[i] &= put_in[i];
  voters.Add(rank);
}

}  // namespace weft::mpi::survive
