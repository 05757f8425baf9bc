#ifndef MPI_HYBRID_SURVIVE_BALLOT_H_
#define MPI_HYBRID_SURVIVE_BALLOT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::mpi::survive {

// A set of ranks out of 0 to size - 1.
class RankSet {
 public:
  RankSet() = default;
  explicit RankSet(int size) : size_(size), words_((static_cast<size_t>(size) + 63) / 64) {}

  int size() const { return size_; }
  bool Has(int rank) const { return (words_[At(rank)] >> rank % 64 & 1) != 0; }
  void Add(int rank) { words_[At(rank)] |= uint64_t{1} << rank % 64; }
  // Adds the ranks of `other`, which has the same size.
  void AddAll(const RankSet& other);
  void Remove(const RankSet& other);
  bool HasAll(const RankSet& other) const;
  int Count() const;
  // The lowest rank that is not in the set; size() if all are.
  int FirstMissing() const;

  // 64 ranks per word, the lowest first.
  const std::vector<uint64_t>& words() const { return words_; }
  // False: the number of words does not fit the number of ranks, or a bit is set that is no rank.
  [[nodiscard]] bool Assign(const std::vector<uint64_t>& words);

  bool operator==(const RankSet&) const = default;

 private:
  static size_t At(int rank) { return static_cast<size_t>(rank) / 64; }

  int size_ = 0;
  std::vector<uint64_t> words_;
};

// The value that processes agree on: the "and" of the words of the voters, perhaps including some that have died; and
// the set of voters.
struct Ballot {
  std::vector<uint64_t> words;  // empty: the voters had different numbers of words
  RankSet voters;

  // Count adds one voter, Merge those of another ballot. Both may contain voters that are in it already.
  void Count(int rank, const std::vector<uint64_t>& put_in);
  void Merge(const Ballot& other);
  // Whether it can be a ballot of a process that voted `put_in`: it has as many words, and the same first word, which
  // is the same at all processes.
  bool IsOf(const std::vector<uint64_t>& put_in) const { return !put_in.empty() && words.size() == put_in.size() && words[0] == put_in[0]; }

  bool operator==(const Ballot&) const = default;
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_BALLOT_H_
