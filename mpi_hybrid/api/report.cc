#include "mpi_hybrid/api/report.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/io/file.h"
#include "mpi_hybrid/survive/recover.h"
#include "pmi/client.h"

namespace weft::mpi {
namespace {

using CxxProxy = void(int kind, int* object, int* code, void (*function)());

// What MPICH's C++ library numbers the kinds of object by.
int CxxKind(ErrorHandler::Kind kind) {
  switch (kind) {
    case ErrorHandler::Kind::kFile:
      return 1;
    case ErrorHandler::Kind::kWin:
      return 2;
    default:
      return 0;
  }
}

const char* KindName(ErrorHandler::Kind kind) {
  switch (kind) {
    case ErrorHandler::Kind::kFile:
      return "file";
    case ErrorHandler::Kind::kWin:
      return "window";
    case ErrorHandler::Kind::kSession:
      return "session";
    default:
      return "communicator";
  }
}

std::string ObjectText(ErrorHandler::Kind kind, void* handle) {
  if (kind == ErrorHandler::Kind::kFile) return "";
  const int value = *static_cast<int*>(handle);
  if (kind == ErrorHandler::Kind::kComm && value == MPI_COMM_WORLD) return " on MPI_COMM_WORLD";
  if (kind == ErrorHandler::Kind::kComm && value == MPI_COMM_SELF) return "";
  char text[64];
  std::snprintf(text, sizeof text, " on %s 0x%08x", KindName(kind), static_cast<unsigned>(value));
  return text;
}

// The line goes out in one write, so that those of several ranks do not mix.
void WriteLine(const std::string& message) {
  const Job& job = ThisJob();
  std::string line = "weft: ";
  if (job.size > 1) line += "rank " + std::to_string(job.rank) + ": ";
  line += message + "\n";
  std::fflush(stdout);
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

// Only 8 bits of it are seen by others, and a failure must not look like success. MPI_Abort(comm, 0) means to look like one.
int StatusFor(int exit_code) { return exit_code == 0 || (exit_code & 0xff) != 0 ? exit_code & 0xff : 1; }

[[noreturn]] void Leave(int exit_code) {
  std::fflush(nullptr);
  // Not exit(): destructors of the program's must not run under other threads, nor call MPI.
  _exit(StatusFor(exit_code));
}

// Whom MPI_ERRORS_ABORT ends (MPI 4.0 section 9.3): the processes of the object; of a session this one. Null: it is not known.
Comm* GroupOf(ErrorHandler::Kind kind, void* handle) {
  if (g_library_state != LibraryState::kRunning) return nullptr;
  switch (kind) {
    case ErrorHandler::Kind::kComm:
      return Comm::Find(*static_cast<int*>(handle));
    case ErrorHandler::Kind::kWin: {
      const Window* const window = Window::Find(*static_cast<int*>(handle));
      return window != nullptr ? window->comm.get() : nullptr;
    }
    case ErrorHandler::Kind::kFile: {
      const io::File* const file = io::File::Find(*static_cast<MPI_File*>(handle));
      return file != nullptr ? file->comm.get() : nullptr;
    }
    default:
      return &Self();
  }
}

}  // namespace

void EndProcess(int exit_code, const std::string& message) {
  WriteLine(message);
  Leave(exit_code);
}

void EndGroup(Comm& comm, int exit_code, const std::string& message) {
  const Job& job = ThisJob();
  const std::vector<ProcessId>& members = comm.local->members;
  const auto of_world = std::count_if(members.begin(), members.end(), [&](ProcessId process) { return job.processes.IsOfWorld(process); });
  if (!job.tells_deaths || of_world == job.size) EndJob(exit_code, message);
  WriteLine(message);
  survive::AbortOthers(comm, StatusFor(exit_code));
  Leave(exit_code);  // without a good-bye: to the others it is a death
}

void EndWith(ProcessId by, int status) {
  WriteLine(ThisJob().processes.Describe(by) + " called MPI_Abort with error code " + std::to_string(status) + " on a communicator that this process is in");
  std::fflush(nullptr);
  _exit(status);
}

void EndJob(int exit_code, const std::string& message) {
  WriteLine(message);
  Job& job = ThisJob();
  if (job.pmi && !job.pmi->is_singleton()) job.pmi->Abort(StatusFor(exit_code), message);
  Leave(exit_code);
}

int CallHandlerWithCode(const char* name, const ErrorHandler* handler, ErrorHandler::Kind kind, void* handle, int code) {
  const ErrorHandler::Kind how = handler != nullptr ? handler->kind : ErrorHandler::Kind::kFatal;
  if (how == ErrorHandler::Kind::kReturn) return code;
  if (how == ErrorHandler::Kind::kFatal || how == ErrorHandler::Kind::kAbort) {
    const std::string message = std::string(name) + " failed" + ObjectText(kind, handle) + ": " + ErrorString(code);
    Comm* const group = how == ErrorHandler::Kind::kAbort ? GroupOf(kind, handle) : nullptr;
    if (group != nullptr) EndGroup(*group, ErrorClassOf(code), message);
    EndJob(ErrorClassOf(code), message);
  }
  int given = code;
  const UnlockGuard unlocked;
  if (handler->cxx_proxy != nullptr) {
    handler->cxx_proxy(CxxKind(kind), static_cast<int*>(handle), &given, reinterpret_cast<void (*)()>(handler->function));
    // The C++ binding returns no codes: it would call the handler again for one that is not a success.
    return MPI_SUCCESS;
  }
  if (handler->fortran) {
    // Fortran knows a file by its number.
    MPI_Fint number = kind == ErrorHandler::Kind::kFile ? io::File::Number(*static_cast<MPI_File*>(handle)) : *static_cast<int*>(handle);
    reinterpret_cast<void (*)(MPI_Fint*, MPI_Fint*)>(handler->function)(&number, &given);
  } else {
    handler->function(static_cast<int*>(handle), &given);
  }
  return given;
}

int CallHandler(const char* name, const ErrorHandler* handler, ErrorHandler::Kind kind, void* handle, const Error& error) {
  if (error.ok()) return MPI_SUCCESS;
  return CallHandlerWithCode(name, handler, kind, handle, MakeErrorCode(error));
}

int ReportOnFile(const char* name, MPI_File file, const Error& error) {
  if (error.ok()) return MPI_SUCCESS;
  const io::File* open = io::File::Find(file);
  const Ref<ErrorHandler> handler = open != nullptr ? open->error_handler : Ref<ErrorHandler>(&FileErrorHandler());
  return ReportOnFileWith(name, *handler, file, error);
}

int ReportOnFileWith(const char* name, const ErrorHandler& handler, MPI_File file, const Error& error) {
  return CallHandler(name, &handler, ErrorHandler::Kind::kFile, &file, error);
}

}  // namespace weft::mpi
