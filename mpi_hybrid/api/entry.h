#ifndef MPI_HYBRID_API_ENTRY_H_
#define MPI_HYBRID_API_ENTRY_H_

#include <mpi.h>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/rma/window.h"

// How an entry point of the library is written:
//
//   int PMPI_Send(const void* buf, int count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {
//     return OnComm("MPI_Send", comm, [&](Comm& c) -> Error {
//       const Datatype* type;
//       WEFT_MPI_TRY(CheckCount(count));
//       WEFT_MPI_TRY(FindCommitted(datatype, &type));
//       ...
//     });
//   }
//   WEFT_MPI_ALIAS(Send)
//
// The alias makes the weak MPI_Send over the strong PMPI_Send, so that profiling tools can stand between (MPI 4.0 section 15.2).
#define WEFT_MPI_ALIAS(name) extern "C" decltype(PMPI_##name) MPI_##name __attribute__((weak, alias("PMPI_" #name)));
// The same for MPICH's extensions, MPIX_ over PMPIX_.
#define WEFT_MPIX_ALIAS(name) extern "C" decltype(PMPIX_##name) MPIX_##name __attribute__((weak, alias("PMPIX_" #name)));

namespace weft::mpi {

// Between MPI_Init and MPI_Finalize, on the state of either.
enum class LibraryState : uint8_t { kBefore, kRunning, kAfter };
extern LibraryState g_library_state;

// Gives `error` (of the function `name`) to the error handler of the object, and returns the code that the entry point
// is to return: MPI_SUCCESS for a success. An object to which the program gave no handler, MPI_COMM_SELF too, has that
// of MPI_COMM_WORLD if the program gave one to that. Called with the lock; lets go of it around the handler, which may
// not return.
int ReportOnComm(const char* name, Comm* comm, const Error& error);
int ReportOnWin(const char* name, Window* window, const Error& error);
// Errors without an object: MPI_COMM_SELF's handler (MPI 4.0 section 9.3).
int ReportAnywhere(const char* name, const Error& error);
int ReportCodeAnywhere(const char* name, int code);
// Ends the program with a message: a call before MPI_Init or after MPI_Finalize, for functions that may not be called then.
[[noreturn]] void NotRunning(const char* name);

Error NoSuchComm(MPI_Comm handle);
Error NoSuchWin(MPI_Win handle);

// Entries: take the lock, find the object, run `body(object) -> Error`, report.
template <typename Body>
int OnComm(const char* name, MPI_Comm handle, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  Comm* comm = Comm::Find(handle);
  if (comm == nullptr) [[unlikely]] return ReportAnywhere(name, NoSuchComm(handle));
  Error error = body(*comm);
  if (error.ok()) [[likely]] return MPI_SUCCESS;
  return ReportOnComm(name, comm, error);
}

template <typename Body>
int OnWin(const char* name, MPI_Win handle, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  Window* window = Window::Find(handle);
  if (window == nullptr) [[unlikely]] return ReportAnywhere(name, NoSuchWin(handle));
  Error error = body(*window);
  if (error.ok()) [[likely]] return MPI_SUCCESS;
  return ReportOnWin(name, window, error);
}

template <typename Body>
int Anywhere(const char* name, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  Error error = body();
  if (error.ok()) [[likely]] return MPI_SUCCESS;
  return ReportAnywhere(name, error);
}

// Arguments. Each error names the argument and its value.
Error CheckCount(MPI_Count count);
Error CheckNotNull(const void* argument, const char* argument_name);  // MPI_ERR_ARG
Error CheckExtent(MPI_Count count, const Datatype& type);  // more than memory can hold: MPI_ERR_COUNT
Error CheckBuffer(const void* buffer, MPI_Count count, const Datatype& type);  // null with data to move: MPI_ERR_BUFFER
Error CheckSendRank(int rank, const Comm& comm);      // a rank of the remote group or MPI_PROC_NULL
Error CheckReceiveRank(int rank, const Comm& comm);   // ... or MPI_ANY_SOURCE
Error CheckRoot(int root, const Comm& comm);          // intercommunicators: MPI_ROOT and MPI_PROC_NULL too
Error CheckSendTag(int tag);
Error CheckReceiveTag(int tag);
Error CheckIntra(const Comm& comm);
Error FindType(MPI_Datatype handle, const Datatype** type);
Error FindCommitted(MPI_Datatype handle, const Datatype** type);
// The type of `count` elements to move. MPI_DATATYPE_NULL is one of nothing, as in programs that are written for MPICH,
// which does not look at it either.
Error FindTypeOfData(MPI_Count count, MPI_Datatype handle, const Datatype** type);
Error FindOp(MPI_Op handle, const Op** op);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_ENTRY_H_
