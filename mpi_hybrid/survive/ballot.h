#ifndef MPI_HYBRID_SURVIVE_BALLOT_H_
#define MPI_HYBRID_SURVIVE_BALLOT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft::mpi::survive {

// Ranks out of 0 to size - 1.
class RankSet {
 public:
  RankSet() = default;
  explicit RankSet(int size) : size_(size), words_((static_cast<size_t>(size) + 63) / 64) {}

  int size() const { return size_; }
  bool Has(int rank) const { return (words_[At(rank)] >> rank % 64 & 1) != 0; }
  void Add(int rank) { words_[At(rank)] |= uint64_t{1} << rank % 64; }
  // Those of `other`, which is of as many ranks.
  void AddAll(const RankSet& other);
  void Remove(const RankSet& other);
  bool HasAll(const RankSet& other) const;
  int Count() const;
  // The lowest rank that is not in it; size() when all are.
  int FirstMissing() const;

  // 64 ranks a word, the lowest first.
  const std::vector<uint64_t>& words() const { return words_; }
  // False: not as many words as ranks take, or one that is no rank.
  [[nodiscard]] bool Assign(const std::vector<uint64_t>& words);

  bool operator==(const RankSet&) const = default;

 private:
  static size_t At(int rank) { return static_cast<size_t>(rank) / 64; }

  int size_ = 0;
  std::vector<uint64_t> words_;
};

// What processes agree on: the "and" of the words that the voters put in, and perhaps of some that have died, and who the voters are.
struct Ballot {
  std::vector<uint64_t> words;  // none: the voters did not put in as many as each other
  RankSet voters;

  // One more voter, and those of another ballot; of some that are in it already, too.
  void Count(int rank, const std::vector<uint64_t>& put_in);
  void Merge(const Ballot& other);
  // Whether it can be of one who put in this: it has as many words, and the first is the same at all.
  bool IsOf(const std::vector<uint64_t>& put_in) const { return !put_in.empty() && words.size() == put_in.size() && words[0] == put_in[0]; }

  bool operator==(const Ballot&) const = default;
};

}  // namespace weft::mpi::survive

#endif  // MPI_HYBRID_SURVIVE_BALLOT_H_
