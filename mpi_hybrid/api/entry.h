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

// The form of an entry point of the library:
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
// The alias makes the weak MPI_Send for the strong PMPI_Send, so that profiling tools can interpose (MPI 4.0 section
// 15.2).
#define WEFT_MPI_ALIAS(name) extern "C" decltype(PMPI_##name) MPI_##name __attribute__((weak, alias("PMPI_" #name)));
// The same for MPICH's extensions, MPIX_ over PMPIX_.
#define WEFT_MPIX_ALIAS(name) extern "C" decltype(PMPIX_##name) MPIX_##name __attribute__((weak, alias("PMPIX_" #name)));

namespace weft::mpi {

// Whether the library is before MPI_Init, between MPI_Init and MPI_Finalize, or after it.
enum class LibraryState : uint8_t { kBefore, kRunning, kAfter };
extern LibraryState g_library_state;

// Calls the object's error handler for `error` of the function `name`. Returns the code that the entry point must
// return; MPI_SUCCESS for a success. An object without a handler of its own, including MPI_COMM_SELF, uses the handler
// of MPI_COMM_WORLD if the program set one. Called with the lock held. Releases it around the handler, which may not
// return.
int ReportOnComm(const char* name, Comm* comm, const Error& error);
int ReportOnWin(const char* name, Window* window, const Error& error);
// For errors without an object: uses the handler of MPI_COMM_SELF (MPI 4.0 section 9.3).
int ReportAnywhere(const char* name, const Error& error);
int ReportCodeAnywhere(const char* name, int code);
// Ends the program with a message: a function that needs the library was called before MPI_Init or after MPI_Finalize.
[[noreturn]] void NotRunning(const char* name);

Error NoSuchComm(MPI_Comm handle);
Error NoSuchWin(MPI_Win handle);

// Entries: take the lock, find the object, run `body(object) -> Error`, report the error.
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

// Before MPI_Init and after MPI_Finalize, too.
template <typename Body>
int AtAnyTime(const char* name, Body body) {
  LockGuard lock;
  return ReportAnywhere(name, body());
}

template <typename Body>
int Anywhere(const char* name, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  Error error = body();
  if (error.ok()) [[likely]] return MPI_SUCCESS;
  return ReportAnywhere(name, error);
}

// Checks of arguments. Each error names the argument and its value. A valid argument costs a comparison or two here;
// the errors are made elsewhere.
namespace wrong {
Error Count(MPI_Count count);
Error Extent(MPI_Count count, const Datatype& type);
Error Buffer(MPI_Count count, const Datatype& type);
Error SendRank(int rank, const Comm& comm);
Error ReceiveRank(int rank, const Comm& comm);
Error SendTag(int tag);
Error ReceiveTag(int tag);
Error Type(MPI_Datatype handle);
Error NotCommitted(MPI_Datatype handle);
Error Null(const char* argument_name);
}  // namespace wrong

inline Error CheckCount(MPI_Count count) {
  if (count >= 0) [[likely]] return {};
  return wrong::Count(count);
}
inline Error CheckNotNull(const void* argument, const char* argument_name) {  // MPI_ERR_ARG
  if (argument != nullptr) [[likely]] return {};
  return wrong::Null(argument_name);
}
// MPI_ERR_COUNT: the data is larger than any memory.
inline Error CheckExtent(MPI_Count count, const Datatype& type) {
  // More than any address space has, and so few that the sum over the ranks of a job does not overflow.
  constexpr MPI_Aint kMost = MPI_Aint{1} << 52;
  MPI_Aint bytes, span;
  if (!__builtin_mul_overflow(count, type.size, &bytes) && !__builtin_mul_overflow(count, type.extent, &span) && bytes <= kMost &&
      (type.size == 0 || count <= 1 || (span <= kMost && span >= -kMost))) [[likely]]
    return {};
  return wrong::Extent(count, type);
}
// MPI_ERR_BUFFER: null although there is data to move. MPI_BOTTOM is null as well; it is legal with a type of absolute
// addresses, whose data is far from its origin.
inline Error CheckBuffer(const void* buffer, MPI_Count count, const Datatype& type) {
  WEFT_MPI_TRY(CheckExtent(count, type));
  if (buffer != nullptr || count == 0 || type.size == 0 || type.true_lb != 0) [[likely]] return {};
  return wrong::Buffer(count, type);
}
// A rank of the remote group, or MPI_PROC_NULL.
inline Error CheckSendRank(int rank, const Comm& comm) {
  if ((rank >= 0 && rank < comm.remote_size()) || rank == MPI_PROC_NULL) [[likely]] return {};
  return wrong::SendRank(rank, comm);
}
// A rank of the remote group, MPI_PROC_NULL or MPI_ANY_SOURCE.
inline Error CheckReceiveRank(int rank, const Comm& comm) {
  if ((rank >= 0 && rank < comm.remote_size()) || rank == MPI_PROC_NULL || rank == MPI_ANY_SOURCE) [[likely]] return {};
  return wrong::ReceiveRank(rank, comm);
}
Error CheckRoot(int root, const Comm& comm);  // also MPI_ROOT and MPI_PROC_NULL on intercommunicators
inline Error CheckSendTag(int tag) {
  if (tag >= 0 && tag <= kLargestTag) [[likely]] return {};
  return wrong::SendTag(tag);
}
inline Error CheckReceiveTag(int tag) {
  if ((tag >= 0 && tag <= kLargestTag) || tag == MPI_ANY_TAG) [[likely]] return {};
  return wrong::ReceiveTag(tag);
}
Error CheckIntra(const Comm& comm);
inline Error FindType(MPI_Datatype handle, const Datatype** type) {
  *type = Datatype::Find(handle);
  if (*type != nullptr) [[likely]] return {};
  return wrong::Type(handle);
}
inline Error FindCommitted(MPI_Datatype handle, const Datatype** type) {
  WEFT_MPI_TRY(FindType(handle, type));
  if ((*type)->committed || (*type)->builtin) [[likely]] return {};
  return wrong::NotCommitted(handle);
}
// The type of `count` elements to move. MPI_DATATYPE_NULL is allowed if count is 0: programs for MPICH use it, and
// MPICH does not check it.
inline Error FindTypeOfData(MPI_Count count, MPI_Datatype handle, const Datatype** type) {
  return FindCommitted(count == 0 && handle == MPI_DATATYPE_NULL ? MPI_BYTE : handle, type);
}
Error FindOp(MPI_Op handle, const Op** op);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_ENTRY_H_
