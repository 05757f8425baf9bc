#include <pthread.h>

#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/library.h"
#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/dynamic/spawn.h"

// MPI_Init to MPI_Finalize (MPI 4.0 section 11.2).
namespace weft::mpi {
namespace {

LibraryState g_world_state = LibraryState::kBefore;  // MPI_Init, MPI_Finalize
int g_thread_level = MPI_THREAD_SINGLE;
pthread_t g_main_thread;

int Initialize(const char* name, int required, int* provided) {
  LockGuard lock;
  if (g_world_state != LibraryState::kBefore) {
    const Error error(MPI_ERR_OTHER, "MPI was initialized before; it can be only once in a process");
    return ReportAnywhere(name, error);
  }
  if (required < MPI_THREAD_SINGLE || required > MPI_THREAD_MULTIPLE) {
    return ReportAnywhere(name, Error(MPI_ERR_ARG, "required " + std::to_string(required) + " is not a level of thread support"));
  }
  g_main_thread = pthread_self();
  g_thread_level = required;
  if (Error error = UseLibrary(); !error.ok()) return ReportAnywhere(name, error);
  Ref<Comm> parents;
  if (Error error = MeetParents(&parents); !error.ok()) return ReportAnywhere(name, error);
  if (parents) {
    parents->name = "MPI_COMM_PARENT";
    Comm::Give(parents);
    SetParents(parents.get());
  }
  g_world_state = LibraryState::kRunning;
  LibraryLock::GrantLevel(required);
  if (provided != nullptr) *provided = required;
  return MPI_SUCCESS;
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Init(int*, char***) { return Initialize("MPI_Init", MPI_THREAD_SINGLE, nullptr); }
WEFT_MPI_ALIAS(Init)

int PMPI_Init_thread(int*, char***, int required, int* provided) { return Initialize("MPI_Init_thread", required, provided); }
WEFT_MPI_ALIAS(Init_thread)

int PMPI_Initialized(int* flag) {
  LockGuard lock;
  if (Error error = CheckNotNull(flag, "flag"); !error.ok()) return ReportAnywhere("MPI_Initialized", error);
  *flag = g_world_state != LibraryState::kBefore;
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(Initialized)

int PMPI_Finalized(int* flag) {
  LockGuard lock;
  if (Error error = CheckNotNull(flag, "flag"); !error.ok()) return ReportAnywhere("MPI_Finalized", error);
  *flag = g_world_state == LibraryState::kAfter;
  return MPI_SUCCESS;
}
WEFT_MPI_ALIAS(Finalized)

int PMPI_Finalize(void) {
  return Anywhere("MPI_Finalize", []() -> Error {
    if (g_world_state != LibraryState::kRunning) NotRunning("MPI_Finalize");
    // Callbacks of attributes are the last to see MPI working (MPI 4.0 section 11.2.4).
    WEFT_MPI_TRY(Self().attributes.DeleteAll(MPI_COMM_SELF));
    WEFT_MPI_TRY(StopUsingLibrary(/*by_all=*/true));
    g_world_state = LibraryState::kAfter;
    return {};
  });
}
WEFT_MPI_ALIAS(Finalize)

int PMPI_Query_thread(int* provided) {
  return Anywhere("MPI_Query_thread", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(provided, "provided"));
    *provided = g_thread_level;
    return {};
  });
}
WEFT_MPI_ALIAS(Query_thread)

int PMPI_Is_thread_main(int* flag) {
  return Anywhere("MPI_Is_thread_main", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    *flag = pthread_equal(pthread_self(), g_main_thread) != 0;
    return {};
  });
}
WEFT_MPI_ALIAS(Is_thread_main)

int PMPI_Abort(MPI_Comm comm, int errorcode) {
  return OnComm("MPI_Abort", comm,
                [&](Comm& c) -> Error { EndGroup(c, errorcode, "MPI_Abort was called with error code " + std::to_string(errorcode)); });
}
WEFT_MPI_ALIAS(Abort)
