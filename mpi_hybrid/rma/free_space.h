#ifndef MPI_HYBRID_RMA_FREE_SPACE_H_
#define MPI_HYBRID_RMA_FREE_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace weft::mpi::rma {

// Manages the free parts of an address range. It knows only numbers and does not touch memory. Operations take
// logarithmic time, unless an alignment rules out parts that would be large enough without it.
class FreeSpace {
 public:
  // The whole range is free at first.
  FreeSpace(uint64_t begin, uint64_t bytes);

  // Allocates `bytes` (not 0) from the smallest free part that has space for them at a multiple of `alignment`, a power
  // of two. nullopt: no part has.
  std::optional<uint64_t> Take(uint64_t bytes, uint64_t alignment);
  // Frees what Take returned, with its length. Merges it with free neighbours.
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
