#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/rma/window.h"

// Synchronisation of windows (MPI 4.0 section 12.5).
namespace weft::mpi {
namespace {

Error FindGroup(MPI_Group handle, Ref<Group>* group) {
  Group* found = Group::Find(handle);
  if (found == nullptr) return Error(MPI_ERR_GROUP, "group is null or not a group");
  *group = Ref<Group>(found);
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Win_fence(int assert, MPI_Win win) {
  return OnWin("MPI_Win_fence", win, [&](Window& w) { return w.Fence(assert); });
}
WEFT_MPI_ALIAS(Win_fence)

int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win) {
  return OnWin("MPI_Win_start", win, [&](Window& w) -> Error {
    Ref<Group> targets;
    WEFT_MPI_TRY(FindGroup(group, &targets));
    return w.Start(targets, assert);
  });
}
WEFT_MPI_ALIAS(Win_start)

int PMPI_Win_complete(MPI_Win win) {
  return OnWin("MPI_Win_complete", win, [&](Window& w) { return w.Complete(); });
}
WEFT_MPI_ALIAS(Win_complete)

int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win) {
  return OnWin("MPI_Win_post", win, [&](Window& w) -> Error {
    Ref<Group> origins;
    WEFT_MPI_TRY(FindGroup(group, &origins));
    return w.Post(origins, assert);
  });
}
WEFT_MPI_ALIAS(Win_post)

int PMPI_Win_wait(MPI_Win win) {
  return OnWin("MPI_Win_wait", win, [&](Window& w) { return w.Wait(); });
}
WEFT_MPI_ALIAS(Win_wait)

int PMPI_Win_test(MPI_Win win, int* flag) {
  return OnWin("MPI_Win_test", win, [&](Window& w) -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    bool done = false;
    Error error = w.Test(&done);
    *flag = done;
    return error;
  });
}
WEFT_MPI_ALIAS(Win_test)

int PMPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
  return OnWin("MPI_Win_lock", win, [&](Window& w) { return w.Lock(lock_type, rank, assert); });
}
WEFT_MPI_ALIAS(Win_lock)

int PMPI_Win_unlock(int rank, MPI_Win win) {
  return OnWin("MPI_Win_unlock", win, [&](Window& w) { return w.Unlock(rank); });
}
WEFT_MPI_ALIAS(Win_unlock)

int PMPI_Win_lock_all(int assert, MPI_Win win) {
  return OnWin("MPI_Win_lock_all", win, [&](Window& w) { return w.LockAll(assert); });
}
WEFT_MPI_ALIAS(Win_lock_all)

int PMPI_Win_unlock_all(MPI_Win win) {
  return OnWin("MPI_Win_unlock_all", win, [&](Window& w) { return w.UnlockAll(); });
}
WEFT_MPI_ALIAS(Win_unlock_all)

int PMPI_Win_flush(int rank, MPI_Win win) {
  return OnWin("MPI_Win_flush", win, [&](Window& w) { return w.Flush(rank); });
}
WEFT_MPI_ALIAS(Win_flush)

int PMPI_Win_flush_all(MPI_Win win) {
  return OnWin("MPI_Win_flush_all", win, [&](Window& w) { return w.Flush(kAllRanks); });
}
WEFT_MPI_ALIAS(Win_flush_all)

int PMPI_Win_flush_local(int rank, MPI_Win win) {
  return OnWin("MPI_Win_flush_local", win, [&](Window& w) { return w.FlushLocal(rank); });
}
WEFT_MPI_ALIAS(Win_flush_local)

int PMPI_Win_flush_local_all(MPI_Win win) {
  return OnWin("MPI_Win_flush_local_all", win, [&](Window& w) { return w.FlushLocal(kAllRanks); });
}
WEFT_MPI_ALIAS(Win_flush_local_all)

int PMPI_Win_sync(MPI_Win win) {
  return OnWin("MPI_Win_sync", win, [&](Window& w) { return w.Sync(); });
}
WEFT_MPI_ALIAS(Win_sync)
