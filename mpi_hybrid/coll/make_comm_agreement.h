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

// What the constructors of communicators (make_comm.h) have in common.
namespace weft::mpi {

// The tag of one collective on `comm`, for several reductions in a row, the later ones of which may start when the
// program has started other collectives on `comm`. Messages of one tag between two processes stay in order, so that the
// reductions cannot be confused.
class ReservedTag {
 public:
  explicit ReservedTag(Comm& comm) : comm_(comm), tag_(comm.next_collective++) {}

  uint32_t tag() const { return tag_; }
  const Comm& comm() const { return comm_; }
  // words = "and" of all ranks' words, in a tree (AllReduceInTree); on intercommunicators of the remote group's, to `result`.
  Error StartAnd(std::span<uint64_t> words, Request** request) { return StartAnd(nullptr, words, request); }
  Error StartAnd(const uint64_t* words, std::span<uint64_t> result, Request** request);

 private:
  Comm& comm_;
  const uint32_t tag_;
};

// Waits for `request` (of a Start that returned `started`), drops it, returns the error of either.
Error Finish(Error started, Request*& request);

// Context ids that belong to no communicator yet; returned to the pool when they are not taken.
class OwnedIds {
 public:
  OwnedIds() = default;
  // `identity`: of the communicator that gets them (Comm::identity).
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
  // Makes the last id's context `comm`'s receive_context, and gives it the identity.
  void GiveTo(Comm& comm);

 private:
  std::vector<uint32_t> ids_;
  uint64_t identity_ = 0;
};

// One agreement over an intracommunicator, in steps that do not wait. Where it fails at a process, others do not wait for that one.
class Agreement {
 public:
  // `willing`: false at some rank makes it fail at all, with MPI_ERR_OTHER.
  Agreement(Comm& comm, size_t ids, bool willing = true);

  // As far as possible. On success either done() or waiting_for() an operation, after which to call it again.
  Error Advance();
  bool done() const { return done_; }
  Request* waiting_for() const { return reduction_; }
  OwnedIds Take();

  // The whole of it.
  static Error Run(Comm& comm, size_t ids, OwnedIds* agreed, bool willing = true);

 private:
  static constexpr uint64_t kWilling = 2;

  ReservedTag tag_;
  ContextSearch search_;
  const bool willing_;
  bool done_ = false;
  Request* reduction_ = nullptr;
};

class InterEnd;
// The steps of a constructor of an intercommunicator, of which all of the local group take all: what the leaders tell, `agree` on two ids, contexts.
Error MakeInterAt(InterEnd& end, Comm& local, const Error& refusal, Ref<Comm>* made, const std::function<Error(bool willing, OwnedIds* ids)>& agree);

// What the groups of an intercommunicator tell each other in place of a context when they did not agree on one (0 is
// MPI_COMM_WORLD's).
constexpr ContextId kNoContext = 0;
Error RemoteFailed();
// What to say when a search comes back with kExhausted.
Error NoContextsLeft();

// An intracommunicator with the error handler of `parent`, for this process as a member of `group`; without context.
Ref<Comm> MakeIntra(const Comm& parent, const Ref<Group>& group, ProcessId self);
// An intercommunicator with its local_comm; without contexts. Both groups have members.
Ref<Comm> MakeInter(const Comm& parent, const Ref<Group>& local, const Ref<Group>& remote, ProcessId self);
// Two ids for `inter`, what the other side receives by, and what both call it.
void GiveContexts(Comm& inter, OwnedIds ids, ContextId remote_context, uint64_t identity);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_MAKE_COMM_AGREEMENT_H_
