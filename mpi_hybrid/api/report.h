#ifndef MPI_HYBRID_API_REPORT_H_
#define MPI_HYBRID_API_REPORT_H_

#include <string>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/error_handler.h"

namespace weft::mpi {

// Gives the error of the function `name` to `handler` (null: MPI_ERRORS_ARE_FATAL) of the object at `handle`, whose kind is
// kComm, kWin, kFile or kSession. Returns what the call is to return: the error code, or what the program's handler stored in its
// place (its second argument is "the error code to be returned", MPI 4.0 section 9.3.1). `handle` points to the handle itself (an int, or
// an MPI_File). With the lock, which it lets go of around the handler.
int CallHandler(const char* name, const ErrorHandler* handler, ErrorHandler::Kind kind, void* handle, const Error& error);
// The same for a code that exists already (MPI_Comm_call_errhandler).
int CallHandlerWithCode(const char* name, const ErrorHandler* handler, ErrorHandler::Kind kind, void* handle, int code);

// The handler of the file, or that which MPI_File_set_errhandler gave to MPI_FILE_NULL (MPI_ERRORS_RETURN at first), which is that of files
// that are opened, too.
int ReportOnFile(const char* name, MPI_File file, const Error& error);
// The same with the handler of a file that is closed by now.
int ReportOnFileWith(const char* name, const ErrorHandler& handler, MPI_File file, const Error& error);

// One line to stderr, "weft: rank 2 on HOST: MESSAGE"; then ends the job through the launcher, and this process with `exit_code`
// (0 is turned into 1). Returns never. With or without the lock.
[[noreturn]] void EndJob(int exit_code, const std::string& message);
// As EndJob, but where the job goes on without those that end (mpiexec -disable-auto-cleanup), only the processes of the communicator's group end.
// With the lock.
[[noreturn]] void EndGroup(Comm& comm, int exit_code, const std::string& message);
// This process does what it is told by one that called EndGroup (survive::OnAborted).
[[noreturn]] void EndWith(ProcessId by, int status);
// The same line, and only this process ends: there is no job yet, or not any more.
[[noreturn]] void EndProcess(int exit_code, const std::string& message);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_REPORT_H_
