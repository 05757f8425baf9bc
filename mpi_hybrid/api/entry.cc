#include "mpi_hybrid/api/entry.h"

#include <cstdio>
#include <cstdlib>

#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/core/job.h"

namespace weft::mpi {

LibraryState g_library_state = LibraryState::kBefore;

namespace {

std::string Hexadecimal(int handle) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%08x", static_cast<unsigned>(handle));
  return text;
}

Error NoSuch(int mpi_class, const char* argument, const char* what, int handle, int null_handle, const char* null_name) {
  if (handle == null_handle) return Error(mpi_class, std::string(argument) + " is " + null_name);
  return Error(mpi_class, std::string(argument) + " " + Hexadecimal(handle) + " is not " + what + " (never made, or freed)");
}

Error BadRank(const char* argument, int rank, const Comm& comm, const char* what) {
  return Error(MPI_ERR_RANK, std::string(argument) + " " + std::to_string(rank) + " is not " + what + " (ranks are 0 to " +
                                 std::to_string(comm.remote_size() - 1) + ")");
}

}  // namespace

// --- reports ---

namespace {

// Who is told of an error: a handler (null: the job ends), with the object that it is given.
struct Told {
  Ref<ErrorHandler> handler;
  ErrorHandler::Kind kind;
  int object;
};

// `own` is the handler that the program gave to `object`. Where it gave none, that of MPI_COMM_WORLD is told if the
// program gave one to that, as MPICH does: the standard would have the job end.
Told WhoIsTold(const Ref<ErrorHandler>& own, ErrorHandler::Kind kind, int object) {
  if (own || g_library_state != LibraryState::kRunning || !World().error_handler) return {own, kind, object};
  return {World().error_handler, ErrorHandler::Kind::kComm, MPI_COMM_WORLD};
}

Told WhoIsToldAnywhere() {
  const bool running = g_library_state == LibraryState::kRunning;
  return WhoIsTold(running ? Self().error_handler : Ref<ErrorHandler>(), ErrorHandler::Kind::kComm, MPI_COMM_SELF);
}

int Tell(Told told, const char* name, const Error& error) {
  return CallHandler(name, told.handler.get(), told.kind, &told.object, error);
}

}  // namespace

int ReportOnComm(const char* name, Comm* comm, const Error& error) {
  if (error.ok()) return MPI_SUCCESS;
  if (comm == nullptr) return ReportAnywhere(name, error);
  return Tell(WhoIsTold(comm->error_handler, ErrorHandler::Kind::kComm, comm->handle), name, error);
}

int ReportOnWin(const char* name, Window* window, const Error& error) {
  if (error.ok()) return MPI_SUCCESS;
  if (window == nullptr) return ReportAnywhere(name, error);
  return Tell(WhoIsTold(window->error_handler, ErrorHandler::Kind::kWin, window->handle), name, error);
}

int ReportAnywhere(const char* name, const Error& error) {
  return error.ok() ? MPI_SUCCESS : Tell(WhoIsToldAnywhere(), name, error);
}

int ReportCodeAnywhere(const char* name, int code) {
  if (code == MPI_SUCCESS) return MPI_SUCCESS;
  Told told = WhoIsToldAnywhere();
  return CallHandlerWithCode(name, told.handler.get(), told.kind, &told.object, code);
}

void NotRunning(const char* name) {
  const bool before = g_library_state == LibraryState::kBefore;
  EndProcess(1, std::string(name) + " was called " + (before ? "before MPI_Init" : "after MPI_Finalize"));
}

Error NoSuchComm(MPI_Comm handle) {
  return NoSuch(MPI_ERR_COMM, "comm", "a communicator", handle, MPI_COMM_NULL, "MPI_COMM_NULL");
}

Error NoSuchWin(MPI_Win handle) { return NoSuch(MPI_ERR_WIN, "win", "a window", handle, MPI_WIN_NULL, "MPI_WIN_NULL"); }

// --- arguments ---

Error wrong::Count(MPI_Count count) { return Error(MPI_ERR_COUNT, "count " + std::to_string(count) + " is negative"); }

Error wrong::Null(const char* argument_name) { return Error(MPI_ERR_ARG, std::string(argument_name) + " is a null pointer"); }

Error wrong::Extent(MPI_Count count, const Datatype& type) {
  return Error(MPI_ERR_COUNT, std::to_string(count) + " elements of " + std::to_string(type.size) + " bytes, " +
                                  std::to_string(type.extent) + " bytes apart, are more than any memory holds");
}

Error wrong::Buffer(MPI_Count count, const Datatype& type) {
  return Error(MPI_ERR_BUFFER, "the buffer is a null pointer, with " + std::to_string(count) + " elements of " +
                                   std::to_string(type.size) + " bytes to transfer");
}

Error wrong::SendRank(int rank, const Comm& comm) {
  return BadRank("rank", rank, comm, "a rank of the communicator or MPI_PROC_NULL");
}

Error wrong::ReceiveRank(int rank, const Comm& comm) {
  return BadRank("source", rank, comm, "a rank of the communicator, MPI_PROC_NULL or MPI_ANY_SOURCE");
}

Error CheckRoot(int root, const Comm& comm) {
  if (root >= 0 && root < comm.remote_size()) [[likely]]
    return {};
  if (comm.inter && (root == MPI_ROOT || root == MPI_PROC_NULL)) return {};
  return Error(MPI_ERR_ROOT, "root " + std::to_string(root) + " is not a rank of the " +
                                 (comm.inter ? "remote group, MPI_ROOT or MPI_PROC_NULL" : "communicator") + " (ranks are 0 to " +
                                 std::to_string(comm.remote_size() - 1) + ")");
}

Error wrong::SendTag(int tag) {
  return Error(MPI_ERR_TAG, "tag " + std::to_string(tag) + " is not within 0 and MPI_TAG_UB, " + std::to_string(kLargestTag));
}

Error wrong::ReceiveTag(int tag) {
  return Error(MPI_ERR_TAG, "tag " + std::to_string(tag) + " is neither MPI_ANY_TAG nor within 0 and MPI_TAG_UB, " +
                                std::to_string(kLargestTag));
}

Error CheckIntra(const Comm& comm) {
  if (!comm.inter) [[likely]]
    return {};
  return Error(MPI_ERR_COMM, "comm is an intercommunicator, where an intracommunicator is needed");
}

Error wrong::Type(MPI_Datatype handle) {
  return NoSuch(MPI_ERR_TYPE, "datatype", "a datatype", handle, MPI_DATATYPE_NULL, "MPI_DATATYPE_NULL");
}

Error wrong::NotCommitted(MPI_Datatype handle) {
  return Error(MPI_ERR_TYPE, "datatype " + Hexadecimal(handle) + " has not been committed (MPI_Type_commit)");
}

Error FindOp(MPI_Op handle, const Op** op) {
  *op = Op::Find(handle);
  if (*op != nullptr) [[likely]]
    return {};
  return NoSuch(MPI_ERR_OP, "op", "a reduction operation", handle, MPI_OP_NULL, "MPI_OP_NULL");
}

}  // namespace weft::mpi
