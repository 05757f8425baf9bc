#include "mpi_hybrid/coll/make_comm_agreement.h"

#include <string>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {

Error ReservedTag::StartAnd(const uint64_t* words, std::span<uint64_t> result, Request** request) {
  const uint32_t next = std::exchange(comm_.next_collective, tag_);
  Error error = (comm_.inter ? &AllReduce : &AllReduceInTree)(words == nullptr ? MPI_IN_PLACE : words, result.data(), static_cast<MPI_Aint>(result.size()),
                                                              *Datatype::Find(MPI_UINT64_T), *Op::Find(MPI_BAND), comm_, Launch::Start(request));
  comm_.next_collective = next;
  return error;
}

Error Finish(Error started, Request*& request) {
  if (!started.ok()) return started;
  Request* const done = std::exchange(request, nullptr);
  Progress::Wait(*done);
  Error error = std::move(done->error);
  done->Release();
  return error;
}

OwnedIds::~OwnedIds() {
  for (uint32_t id : ids_) TheContextPool().Release(id);
}

void OwnedIds::GiveTo(Comm& comm) {
  comm.receive_context = comm.send_context = ContextPool::ContextOf(ids_.back());
  comm.owns_context = true;
  comm.set_identity(identity_);
  ids_.pop_back();
}

Agreement::Agreement(Comm& comm, size_t ids, bool willing)
    : tag_(comm), search_(TheContextPool(), uint64_t{comm.receive_context} << 32 | tag_.tag(), ids), willing_(willing) {
  WEFT_CHECK(!comm.inter);
}

Error Agreement::Advance() {
  for (;;) {
    if (reduction_ == nullptr) WEFT_MPI_TRY(tag_.StartAnd(search_.Begin(willing_ ? kWilling : 0), &reduction_));
    if (!reduction_->complete) return {};
    WEFT_MPI_TRY(Finish({}, reduction_));
    const ContextSearch::Outcome outcome = search_.End();
    const bool all_willing = (search_.flags() & kWilling) != 0;
    if (outcome == ContextSearch::Outcome::kAgreed) done_ = true;
    if (!all_willing) {
      if (done_) Take();
      return Error(MPI_ERR_OTHER, "another process of the communicator could not take part");
    }
    if (outcome == ContextSearch::Outcome::kExhausted) return NoContextsLeft();
    if (done_) return {};
  }
}

OwnedIds Agreement::Take() {
  WEFT_CHECK(done_);
  return OwnedIds(search_.ids(), tag_.comm().IdentityOfChild(tag_.tag()));
}

Error Agreement::Run(Comm& comm, size_t ids, OwnedIds* agreed, bool willing) {
  Agreement agreement(comm, ids, willing);
  for (;;) {
    WEFT_MPI_TRY(agreement.Advance());
    if (agreement.done()) break;
    Progress::Wait(*agreement.waiting_for());
  }
  *agreed = agreement.Take();
  return {};
}

Error RemoteFailed() { return Error(MPI_ERR_OTHER, "a process of the remote group could not take part"); }

Error NoContextsLeft() {
  return Error(MPI_ERR_OTHER, "no context id is free at all processes: at most " +
                                  std::to_string(ContextPool::kWords * 64) +
                                  " communicators (intercommunicators count twice) can exist at a time; free some");
}

namespace {

Ref<Comm> MakeOver(const Comm& parent, const Ref<Group>& group, ProcessId self) {
  Ref<Comm> comm = MakeRef<Comm>();
  comm->local = comm->remote = group;
  comm->rank = group->RankOf(self);
  comm->error_handler = parent.error_handler;
  return comm;
}

}  // namespace

Ref<Comm> MakeIntra(const Comm& parent, const Ref<Group>& group, ProcessId self) {
  Ref<Comm> comm = MakeOver(parent, group, self);
  comm->HoldMembers();
  return comm;
}

Ref<Comm> MakeInter(const Comm& parent, const Ref<Group>& local, const Ref<Group>& remote, ProcessId self) {
  Ref<Comm> comm = MakeOver(parent, local, self);
  comm->remote = remote;
  comm->inter = true;
  const ProcessTable& processes = ThisJob().processes;
  comm->is_local_first = processes.NameOf(local->members[0]) < processes.NameOf(remote->members[0]);
  comm->HoldMembers();
  comm->local_comm = MakeIntra(parent, local, self);
  return comm;
}

void GiveContexts(Comm& inter, OwnedIds ids, ContextId remote_context, uint64_t identity) {
  ids.GiveTo(*inter.local_comm);
  inter.local_comm->set_identity(0);  // it goes as the whole does
  ids.GiveTo(inter);
  inter.set_identity(identity);
  inter.send_context = remote_context;
}

}  // namespace weft::mpi
