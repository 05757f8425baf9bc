#ifndef MPI_HYBRID_RMA_FREE_SPACE_H_
#define MPI_HYBRID_RMA_FREE_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weft::mpi::rma {

// Which parts of a stretch of addresses are free. Knows numbers only and touches no memory. Takes logarithmic time, but where an alignment passes over parts that would be large enough without it.
class FreeSpace {
 public:
  // All of it is free.
  FreeSpace(uint64_t begin, uint64_t bytes);

  // `bytes`, not 0, from the smallest free part that has room for them at a multiple of `alignment`, a power of two. nullopt: none has.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  // What Take returned, with its length. Joins its free neighbours.
  void Give(uint64_t at, uint64_t bytes);
  bool all_free() const { return by_address_.size() == 1 && by_address_.begin()->second == bytes_; }

 private:
  void Add(uint64_t at, uint64_t bytes);
  void Remove(std::map<uint64_t, uint64_t>::iterator part);

  const uint64_t bytes_;
  std::map<uint64_t, uint64_t> by_address_;           // the length of each free part
  std::set<std::pair<uint64_t, uint64_t>> by_bytes_;  // length, address
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_FREE_SPACE_H_
