#ifndef MPI_HYBRID_COMM_CONTEXT_POOL_H_
#define MPI_HYBRID_COMM_CONTEXT_POOL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"

namespace weft::mpi {

// Which context ids this process uses. An id is a pair of contexts, 2 * id and 2 * id + 1. Processes that make a
// communicator together must agree on an id that is free at all of them: each proposes some of its free ids as a bit
// mask, the masks are reduced with "and", the lowest bits that are left are taken. A proposed id belongs to its
// proposal until that is settled, so that any number of agreements may be under way at once (threads, MPI_Comm_idup),
// none waits for another, and no two get the same id.
class ContextPool {
 public:
  static constexpr size_t kWords = 1024;  // of 64 ids
  static constexpr uint32_t kPorts = 2;  // what who comes to a port says first
  static constexpr uint32_t kGroups = 3;  // of groups that make a communicator without one
  static constexpr uint32_t kFirstFree = 4;
  static constexpr uint32_t kContexts = 2 * 64 * kWords;  // all contexts are below

  static ContextId ContextOf(uint32_t id) { return 2 * id; }
  static uint32_t IdOf(ContextId context) { return context / 2; }

  ContextPool();

  // All ids of the words [first, first + mask.size()), modulo kWords, that are free and not in another proposal. True:
  // no other proposal holds ids, so that `mask` has every free id of them.
  bool Propose(size_t first, std::span<uint64_t> mask);
  // Ends a proposal: `proposed` as Propose filled it, `taken` of those are used from now on.
  void Settle(size_t first, std::span<const uint64_t> proposed, std::span<const uint32_t> taken);
  void Release(uint32_t id);
  // An id for what needs no agreement. nullopt: none is free.
  std::optional<uint32_t> Take();

  bool IsFree(uint32_t id) const;

 private:
  std::array<uint64_t, kWords> free_;
  size_t proposed_ = 0;  // ids in proposals
};

ContextPool& TheContextPool();

// The attempts of one agreement, the same at all of its processes when `seed` is. Few ids at first, a different place
// for each seed: short messages, and agreements that run at once seldom want the same ids. More with every attempt in
// vain, all ids in each fourth. Exhausted when all ids were there to choose from, or after many attempts.
class ContextSearch {
 public:
  // `ids`: how many to agree on.
  ContextSearch(ContextPool& pool, uint64_t seed, size_t ids) : pool_(pool), seed_(seed), wanted_(ids) {}
  ~ContextSearch();
  ContextSearch(const ContextSearch&) = delete;
  ContextSearch& operator=(const ContextSearch&) = delete;

  enum class Outcome : uint8_t { kAgreed, kAgain, kExhausted };

  // Bits of Begin's `flags` that are the search's own; the others are reduced for the caller.
  static constexpr uint64_t kUndisturbed = 1;

  // What to reduce with "and" over all processes: words of ids, and at the end `flags` with whether all proposals were
  // undisturbed.
  std::span<uint64_t> Begin(uint64_t flags = 0);
  // After the reduction, in place.
  Outcome End();
  const std::vector<uint32_t>& ids() const { return ids_; }  // the caller's to release
  uint64_t flags() const { return reduced_.back(); }         // of the last reduction

 private:
  ContextPool& pool_;
  const uint64_t seed_;
  const size_t wanted_;
  uint32_t attempt_ = 0;
  size_t first_ = 0;
  std::vector<uint64_t> proposed_, reduced_;
  std::vector<uint32_t> ids_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_CONTEXT_POOL_H_
