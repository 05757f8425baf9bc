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

// The context ids that this process uses. An id is a pair of contexts, 2 * id and 2 * id + 1. Processes that make a
// communicator together must agree on an id that is free at all of them. Each proposes some of its free ids as a bit
// mask. The masks are reduced with "and", and the lowest bits that remain are taken. A proposed id is reserved until
// its proposal is settled. Therefore any number of agreements may run at once (threads, MPI_Comm_idup), none waits for
// another, and no two get the same id.
class ContextPool {
 public:
  static constexpr size_t kWords = 1024;  // of 64 ids
  static constexpr uint32_t kPorts = 2;  // the first message of a process that connects to a port
  static constexpr uint32_t kGroups = 3;  // for communicators that are made from a group, without a parent
  static constexpr uint32_t kFirstFree = 4;
  static constexpr uint32_t kContexts = 2 * 64 * kWords;  // all contexts are below this

  static ContextId ContextOf(uint32_t id) { return 2 * id; }
  static uint32_t IdOf(ContextId context) { return context / 2; }

  ContextPool();

  // Fills `mask` with all ids of the words [first, first + mask.size()), modulo kWords, that are free and not in
  // another proposal. True: no other proposal holds any id now, so that `mask` contains every free one.
  bool Propose(size_t first, std::span<uint64_t> mask);
  // Ends a proposal. `proposed`: as Propose filled it. The ids `taken` of it are in use from now on; the others are
  // free again.
  void Settle(size_t first, std::span<const uint64_t> proposed, std::span<const uint32_t> taken);
  void Release(uint32_t id);
  // Takes an id that needs no agreement. nullopt: none is free.
  std::optional<uint32_t> Take();

  bool IsFree(uint32_t id) const;

 private:
  std::array<uint64_t, kWords> free_;
  size_t proposed_ = 0;  // ids in proposals
};

ContextPool& TheContextPool();

// The attempts of one agreement. They are the same at all of its processes if `seed` is. The first attempts propose few
// ids, at a place that depends on the seed: messages are short, and concurrent agreements seldom want the same ids.
// Each failed attempt raises the number of ids; each fourth attempt proposes all ids. The search is exhausted when it
// fails with all ids proposed, or after many attempts.
class ContextSearch {
 public:
  // `ids`: the number of ids to agree on.
  ContextSearch(ContextPool& pool, uint64_t seed, size_t ids) : pool_(pool), seed_(seed), wanted_(ids) {}
  ~ContextSearch();
  ContextSearch(const ContextSearch&) = delete;
  ContextSearch& operator=(const ContextSearch&) = delete;

  enum class Outcome : uint8_t { kAgreed, kAgain, kExhausted };

  // A bit of Begin's `flags` that the search itself uses. The other bits are reduced for the caller.
  static constexpr uint64_t kUndisturbed = 1;

  // Returns the words to reduce with "and" over all processes: the words of ids, followed by `flags`, which also tells
  // whether all proposals were undisturbed.
  std::span<uint64_t> Begin(uint64_t flags = 0);
  // To call after the reduction, which was made in place.
  Outcome End();
  const std::vector<uint32_t>& ids() const { return ids_; }  // the caller must release them
  uint64_t flags() const { return reduced_.back(); }         // result of the last reduction

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
