#ifndef MPI_HYBRID_COLL_MAKE_COMM_AGREEMENT_H_
#define MPI_HYBRID_COLL_MAKE_COMM_AGREEMENT_H_

#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/comm/context_pool.h"
#include "mpi_hybrid/p2p/request/request.h"

// Common parts of the constructors of communicators (make_comm.h).
namespace weft::mpi {

// The tag of one collective on `comm`, for several reductions in a row. A later reduction may start after the program
// has started other collectives on `comm`. Messages with one tag between two processes stay in order, so that the
// reductions cannot be confused.
class ReservedTag {
 public:
  explicit ReservedTag(Comm& comm) : comm_(comm), tag_(comm.next_collective++) {}

  uint32_t tag() const { return tag_; }
  const Comm& comm() const { return comm_; }
  // words = "and" of the words of all ranks, in a tree (AllReduceInTree). On an intercommunicator `result` gets the
  // words of the remote group.
  Error StartAnd(std::span<uint64_t> words, Request** request) { return StartAnd(nullptr, words, request); }
  Error StartAnd(const uint64_t* words, std::span<uint64_t> result, Request** request);

 private:
  Comm& comm_;
  const uint32_t tag_;
};

// Waits for `request` (whose Start returned `started`), releases it, and returns the error of either.
Error Finish(Error started, Request*& request);

// Context ids that belong to no communicator yet. They return to the pool if they are not given to one.
class OwnedIds {
 public:
  OwnedIds() = default;
  // `identity`: of the communicator that will get them (Comm::identity).
  OwnedIds(std::vector<uint32_t> ids, uint64_t identity) : ids_(std::move(ids)), identity_(identity) {}
  OwnedIds(OwnedIds&& other) noexcept : ids_(std::exchange(other.ids_, {})), identity_(other.identity_) {}
  OwnedIds& operator=(OwnedIds&& other) noexcept {
    std::swap(ids_, other.ids_);
    std::swap(identity_, other.identity_);
    return *this;
  }
  ~OwnedIds();

  ContextId context(size_t i) const { return ContextPool::ContextOf(ids_[i]); }
  uint64_t identity() const { return identity_; }
  // Makes the context of the last id the receive_context of `comm`, and sets the identity of `comm`.
  void GiveTo(Comm& comm);

 private:
  std::vector<uint32_t> ids_;
  uint64_t identity_ = 0;
};

// One agreement over an intracommunicator, in steps that do not block. If it fails at a process, the others do not wait
// for that process.
class Agreement {
 public:
  // `willing`: if false at one rank, the agreement fails at all ranks with MPI_ERR_OTHER.
  Agreement(Comm& comm, size_t ids, bool willing = true);

  // Goes on as far as possible without blocking. After success either done() is true, or the caller calls it again when
  // the operation waiting_for() has completed.
  Error Advance();
  bool done() const { return done_; }
  Request* waiting_for() const { return reduction_; }
  OwnedIds Take();

  // Runs a whole agreement.
  static Error Run(Comm& comm, size_t ids, OwnedIds* agreed, bool willing = true);

 private:
  static constexpr uint64_t kWilling = 2;

  ReservedTag tag_;
  ContextSearch search_;
  const bool willing_;
  bool done_ = false;
  Request* reduction_ = nullptr;
};

class GroupTree;
// The agreement of a group's processes on `count` ids. `willing`: false at some process makes it fail at all.
Error AgreeInTree(GroupTree& tree, uint64_t seed, size_t count, bool willing, OwnedIds* agreed);

class InterEnd;
// Runs the steps of a constructor of an intercommunicator: the leaders' exchange, `agree` on two ids, and contexts.
// Every member of the local group takes part in every step.
Error MakeInterAt(InterEnd& end, Comm& local, const Error& refusal, Ref<Comm>* made, const std::function<Error(bool willing, OwnedIds* ids)>& agree);

// Sent between the groups of an intercommunicator in place of a context if a group did not agree on one. (0 belongs to
// MPI_COMM_WORLD.)
constexpr ContextId kNoContext = 0;
Error RemoteFailed();
// The error for a search that ended with kExhausted.
Error NoContextsLeft();

// Makes an intracommunicator for this process as a member of `group`, with the error handler of `parent` and without a
// context.
Ref<Comm> MakeIntra(const Comm& parent, const Ref<Group>& group, ProcessId self);
// Makes an intercommunicator with its local_comm, without contexts. Both groups have members.
Ref<Comm> MakeInter(const Comm& parent, const Ref<Group>& local, const Ref<Group>& remote, ProcessId self);
// Sets the contexts of `inter`: two ids of its own, the context in which the other side receives, and the identity that
// both sides use.
void GiveContexts(Comm& inter, OwnedIds ids, ContextId remote_context, uint64_t identity);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_MAKE_COMM_AGREEMENT_H_
