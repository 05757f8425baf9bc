#include "mpi_hybrid/io/shared_pointer.h"

#include <mpi.h>

#include <atomic>

#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/survive/recover.h"

namespace weft::mpi::io {

Error SharedPointer::Make(Comm& comm) {
  if (comm.size() == 1) return {};
  WEFT_MPI_TRY(Break(comm, AllocateWindow(comm.rank == 0 ? sizeof(int64_t) : 0, 1, comm, nullptr, &window_)));
  // Other threads change it when all have met.
  if (comm.rank == 0) std::atomic_ref(*static_cast<int64_t*>(window_->base)).store(0);
  Error locked = window_->LockAll(MPI_MODE_NOCHECK);
  Error met = Meet(comm);
  return locked.ok() ? met : locked;
}

Error SharedPointer::Drop(bool broken) {
  if (!window_) return {};
  const Ref<Comm> comm = window_->comm;
  if (broken) survive::Revoke(*comm);
  Error unlocked = window_->UnlockAll();
  Error freed = Break(*comm, window_->Free());
  window_ = nullptr;
  return unlocked.ok() ? freed : unlocked;
}

Error SharedPointer::Apply(MPI_Op op, int64_t operand, int64_t* before) {
  const Datatype& type = *Datatype::Find(MPI_INT64_T);
  WEFT_MPI_TRY(window_->FetchAndOp(&operand, before, type, Target{0, 0, 1, &type}, *Op::Find(op)));
  return window_->Flush(0);
}

Error SharedPointer::Advance(int64_t etypes, int64_t* before) {
  if (window_) return Apply(etypes == 0 ? MPI_NO_OP : MPI_SUM, etypes, before);
  *before = alone_;
  alone_ += etypes;
  return {};
}

Error SharedPointer::Set(int64_t value) {
  int64_t before;
  if (window_) return Apply(MPI_REPLACE, value, &before);
  alone_ = value;
  return {};
}

}  // namespace weft::mpi::io
