#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/rma/window.h"

// Synchronisation of windows (MPI 4.0 section 12.5).
namespace weft::mpi {
namespace {

Error FindGroupOfWindow(MPI_Group handle, Ref<Group>* group) {
  Group* found = Group::Find(handle);
  if (found == nullptr) return Error(MPI_ERR_GROUP, "group is null or not a group");
  *group = Ref<Group>(found);
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

WEFT_MPI_FUNCTION(Win_fence, (int assert, MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Fence(assert); }))

int PMPI_Win_start(MPI_Group group, int assert, MPI_Win win) {
  return OnWin("MPI_Win_start", win, [&](Window& w) -> Error {
    Ref<Group> targets;
    WEFT_MPI_TRY(FindGroupOfWindow(group, &targets));
    return w.Start(targets, assert);
  });
}
WEFT_MPI_ALIAS(Win_start)

WEFT_MPI_FUNCTION(Win_complete, (MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Complete(); }))

int PMPI_Win_post(MPI_Group group, int assert, MPI_Win win) {
  return OnWin("MPI_Win_post", win, [&](Window& w) -> Error {
    Ref<Group> origins;
    WEFT_MPI_TRY(FindGroupOfWindow(group, &origins));
    return w.Post(origins, assert);
  });
}
WEFT_MPI_ALIAS(Win_post)

WEFT_MPI_FUNCTION(Win_wait, (MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Wait(); }))

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

WEFT_MPI_FUNCTION(Win_lock, (int lock_type, int rank, int assert, MPI_Win win),
                  OnWin(name, win, [&](Window& w) { return w.Lock(lock_type, rank, assert); }))

WEFT_MPI_FUNCTION(Win_unlock, (int rank, MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Unlock(rank); }))

WEFT_MPI_FUNCTION(Win_lock_all, (int assert, MPI_Win win),
                  OnWin(name, win, [&](Window& w) { return w.LockAll(assert); }))

WEFT_MPI_FUNCTION(Win_unlock_all, (MPI_Win win), OnWin(name, win, [&](Window& w) { return w.UnlockAll(); }))

WEFT_MPI_FUNCTION(Win_flush, (int rank, MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Flush(rank); }))

WEFT_MPI_FUNCTION(Win_flush_all, (MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Flush(kAllRanks); }))

WEFT_MPI_FUNCTION(Win_flush_local, (int rank, MPI_Win win),
                  OnWin(name, win, [&](Window& w) { return w.FlushLocal(rank); }))

WEFT_MPI_FUNCTION(Win_flush_local_all, (MPI_Win win),
                  OnWin(name, win, [&](Window& w) { return w.FlushLocal(kAllRanks); }))

WEFT_MPI_FUNCTION(Win_sync, (MPI_Win win), OnWin(name, win, [&](Window& w) { return w.Sync(); }))
