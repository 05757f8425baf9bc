#ifndef MPI_HYBRID_API_REPORT_H_
#define MPI_HYBRID_API_REPORT_H_

#include <string>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/error_handler.h"

namespace weft::mpi {

// Reports the error of the function `name` to `handler` (null: MPI_ERRORS_ARE_FATAL) of the object at `handle`, of kind
// kComm, kWin, kFile or kSession. Returns the value that the call must return: the error code, or the value that the
// program's handler stored in its place (its second argument is "the error code to be returned", MPI 4.0 section
// 9.3.1). `handle` points to the handle itself (an int, or an MPI_File). Call with the lock held; it is released around
// the handler.
int CallHandler(const char* name, const ErrorHandler* handler, ErrorHandler::Kind kind, void* handle, const Error& error);
// The same for an existing code (MPI_Comm_call_errhandler).
int CallHandlerWithCode(const char* name, const ErrorHandler* handler, ErrorHandler::Kind kind, void* handle, int code);

// Uses the handler of the file, or that of MPI_FILE_NULL. The latter is MPI_ERRORS_RETURN until MPI_File_set_errhandler
// changes it; newly opened files get it as well.
int ReportOnFile(const char* name, MPI_File file, const Error& error);
// The same with the handler of a file that is closed already.
int ReportOnFileWith(const char* name, const ErrorHandler& handler, MPI_File file, const Error& error);

// Writes one line to stderr, "weft: rank 2 on HOST: MESSAGE". Then ends the job through the launcher, and this process
// with `exit_code` (0 becomes 1). Does not return. With or without the lock.
[[noreturn]] void EndJob(int exit_code, const std::string& message);
// Like EndJob. But if the job continues without the processes that end (mpiexec -disable-auto-cleanup), only the
// processes of the communicator's group end. Call with the lock held.
[[noreturn]] void EndGroup(Comm& comm, int exit_code, const std::string& message);
// Ends this process as requested by a process that called EndGroup (survive::OnAborted).
[[noreturn]] void EndWith(ProcessId by, int status);
// Writes the same line, but only this process ends: there is no job yet, or it has ended.
[[noreturn]] void EndProcess(int exit_code, const std::string& message);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_REPORT_H_
