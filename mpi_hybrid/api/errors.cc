#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/file_entry.h"
#include "mpi_hybrid/api/report.h"
#include "mpi_hybrid/core/error_handler.h"

// Error handlers, codes and strings (MPI 4.0 sections 9.3 to 9.5). Those without an object may be called at any time.
namespace weft::mpi {
namespace {

using Kind = ErrorHandler::Kind;
using Function = void(int*, int*, ...);

int CreateHandler(const char* name, Kind kind, Function* function, MPI_Errhandler* errhandler) {
  return AtAnyTime(name, [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(reinterpret_cast<void*>(function), "the error handler's function"));
    WEFT_MPI_TRY(CheckNotNull(errhandler, "errhandler"));
    *errhandler = MakeErrorHandler(kind, function).handle;
    return {};
  });
}

const char* HandlerKindName(Kind kind) {
  switch (kind) {
    case Kind::kComm:
      return "communicators";
    case Kind::kWin:
      return "windows";
    case Kind::kFile:
      return "files";
    case Kind::kSession:
      return "sessions";
    default:
      return "any object";
  }
}

Error FindHandler(MPI_Errhandler handle, Kind kind, ErrorHandler** handler) {
  *handler = ErrorHandler::Find(handle);
  if (*handler == nullptr) {
    char text[16];
    std::snprintf(text, sizeof text, "0x%08x", static_cast<unsigned>(handle));
    return Error(MPI_ERR_ARG, std::string("errhandler ") + (handle == MPI_ERRHANDLER_NULL
                                                                ? "is MPI_ERRHANDLER_NULL"
                                                                : std::string(text) + " is not an error handler"));
  }
  const Kind has = (*handler)->kind;
  if (has == kind || has == Kind::kFatal || has == Kind::kReturn || has == Kind::kAbort) return {};
  return Error(MPI_ERR_ARG, std::string("errhandler is for ") + HandlerKindName(has) + ", not " + HandlerKindName(kind));
}

Error SetHandler(MPI_Errhandler handle, Kind kind, Ref<ErrorHandler>* of_object) {
  ErrorHandler* handler;
  WEFT_MPI_TRY(FindHandler(handle, kind, &handler));
  *of_object = Ref<ErrorHandler>(handler);
  return {};
}

// The program frees what it got: another reference.
Error GetHandler(const Ref<ErrorHandler>& of_object, MPI_Errhandler* errhandler) {
  WEFT_MPI_TRY(CheckNotNull(errhandler, "errhandler"));
  const ErrorHandler& handler = of_object ? *of_object : FatalErrorHandler();
  handler.AddRef();
  *errhandler = handler.handle;
  return {};
}

int SetOnComm(const char* name, MPI_Comm comm, MPI_Errhandler errhandler) {
  return OnComm(name, comm, [&](Comm& c) { return SetHandler(errhandler, Kind::kComm, &c.error_handler); });
}

int GetOnComm(const char* name, MPI_Comm comm, MPI_Errhandler* errhandler) {
  return OnComm(name, comm, [&](Comm& c) { return GetHandler(c.error_handler, errhandler); });
}

// The program's own error, given to the handler of its object. The function itself succeeds if the handler returns.
template <typename Object>
Error CallOf(const char* name, Kind kind, Object& object, int code) {
  if (!IsErrorCode(code)) return Error(MPI_ERR_ARG, "errorcode " + std::to_string(code) + " is not an error code");
  const Ref<ErrorHandler> handler = object.error_handler;
  int handle = object.handle;
  CallHandlerWithCode(name, handler.get(), kind, &handle, code);
  return {};
}

// The file's handler; of MPI_FILE_NULL that which files get when they are opened, and which hears where there is no file.
template <typename Body>
int OnFileHandler(const char* name, MPI_File file, Body body) {
  LockGuard lock;
  if (file == MPI_FILE_NULL) {
    Ref<ErrorHandler> handler(&FileErrorHandler());
    Error error = body(handler);
    if (error.ok()) SetFileErrorHandler(handler);
    return ReportOnFile(name, file, error);
  }
  const Ref<io::File> open(io::File::Find(file));
  if (!open) return ReportOnFile(name, MPI_FILE_NULL, NoSuchFile(file));
  Error error = body(open->error_handler);
  // Requests of the file report to its communicator, which can have those that are not for files.
  if (!IsMade(open->error_handler->handle)) open->comm->error_handler = open->error_handler;
  return ReportOnFile(name, file, error);
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

// --- handlers of communicators ---

WEFT_MPI_FUNCTION(Comm_create_errhandler, (MPI_Comm_errhandler_function * function, MPI_Errhandler* errhandler),
                  CreateHandler(name, Kind::kComm, function, errhandler))

WEFT_MPI_FUNCTION(Errhandler_create, (MPI_Comm_errhandler_function * function, MPI_Errhandler* errhandler),
                  CreateHandler(name, Kind::kComm, function, errhandler))

WEFT_MPI_FUNCTION(Comm_set_errhandler, (MPI_Comm comm, MPI_Errhandler errhandler), SetOnComm(name, comm, errhandler))

WEFT_MPI_FUNCTION(Errhandler_set, (MPI_Comm comm, MPI_Errhandler errhandler), SetOnComm(name, comm, errhandler))

WEFT_MPI_FUNCTION(Comm_get_errhandler, (MPI_Comm comm, MPI_Errhandler* errhandler), GetOnComm(name, comm, errhandler))

WEFT_MPI_FUNCTION(Errhandler_get, (MPI_Comm comm, MPI_Errhandler* errhandler), GetOnComm(name, comm, errhandler))

int PMPI_Comm_call_errhandler(MPI_Comm comm, int errorcode) {
  static constexpr char kName[] = "MPI_Comm_call_errhandler";
  return OnComm(kName, comm, [&](Comm& c) { return CallOf(kName, Kind::kComm, c, errorcode); });
}
WEFT_MPI_ALIAS(Comm_call_errhandler)

int PMPI_Errhandler_free(MPI_Errhandler* errhandler) {
  return AtAnyTime("MPI_Errhandler_free", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(errhandler, "errhandler"));
    ErrorHandler* handler = ErrorHandler::Find(*errhandler);
    if (handler == nullptr) return FindHandler(*errhandler, Kind::kComm, &handler);
    // Predefined ones live on whatever the count: they may be freed as often as MPI_Comm_get_errhandler gave them, and
    // MPICH is as lenient.
    if (IsMade(handler->handle)) handler->Release();
    *errhandler = MPI_ERRHANDLER_NULL;
    return {};
  });
}
WEFT_MPI_ALIAS(Errhandler_free)

// --- of windows ---

WEFT_MPI_FUNCTION(Win_create_errhandler, (MPI_Win_errhandler_function * function, MPI_Errhandler* errhandler),
                  CreateHandler(name, Kind::kWin, function, errhandler))

WEFT_MPI_FUNCTION(Win_set_errhandler, (MPI_Win win, MPI_Errhandler errhandler),
                  OnWin(name, win, [&](Window& w) { return SetHandler(errhandler, Kind::kWin, &w.error_handler); }))

WEFT_MPI_FUNCTION(Win_get_errhandler, (MPI_Win win, MPI_Errhandler* errhandler),
                  OnWin(name, win, [&](Window& w) { return GetHandler(w.error_handler, errhandler); }))

int PMPI_Win_call_errhandler(MPI_Win win, int errorcode) {
  static constexpr char kName[] = "MPI_Win_call_errhandler";
  return OnWin(kName, win, [&](Window& w) { return CallOf(kName, Kind::kWin, w, errorcode); });
}
WEFT_MPI_ALIAS(Win_call_errhandler)

// --- of files ---

WEFT_MPI_FUNCTION(File_create_errhandler, (MPI_File_errhandler_function * function, MPI_Errhandler* errhandler),
                  CreateHandler(name, Kind::kFile, reinterpret_cast<Function*>(function), errhandler))

WEFT_MPI_FUNCTION(File_set_errhandler, (MPI_File file, MPI_Errhandler errhandler),
                  OnFileHandler(name, file, [&](Ref<ErrorHandler>& handler) { return SetHandler(errhandler, Kind::kFile, &handler); }))

WEFT_MPI_FUNCTION(File_get_errhandler, (MPI_File file, MPI_Errhandler* errhandler),
                  OnFileHandler(name, file, [&](Ref<ErrorHandler>& handler) { return GetHandler(handler, errhandler); }))

int PMPI_File_call_errhandler(MPI_File file, int errorcode) {
  static constexpr char kName[] = "MPI_File_call_errhandler";
  return OnFileHandler(kName, file, [&](Ref<ErrorHandler>& handler) -> Error {
    if (!IsErrorCode(errorcode)) return Error(MPI_ERR_ARG, "errorcode " + std::to_string(errorcode) + " is not an error code");
    const Ref<ErrorHandler> called = handler;
    CallHandlerWithCode(kName, called.get(), Kind::kFile, &file, errorcode);
    return {};
  });
}
WEFT_MPI_ALIAS(File_call_errhandler)

// --- of sessions ---

WEFT_MPI_FUNCTION(Session_create_errhandler, (MPI_Session_errhandler_function * function, MPI_Errhandler* errhandler),
                  CreateHandler(name, Kind::kSession, function, errhandler))

// --- codes and strings ---

int PMPI_Error_class(int errorcode, int* errorclass) {
  return AtAnyTime("MPI_Error_class", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(errorclass, "errorclass"));
    *errorclass = ErrorClassOf(errorcode);
    return {};
  });
}
WEFT_MPI_ALIAS(Error_class)

int PMPI_Error_string(int errorcode, char* string, int* resultlen) {
  return AtAnyTime("MPI_Error_string", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(string, "string"));
    WEFT_MPI_TRY(CheckNotNull(resultlen, "resultlen"));
    if (!IsErrorCode(errorcode))
      return Error(MPI_ERR_ARG, "errorcode " + std::to_string(errorcode) + " is not an error code");
    const std::string text = ErrorString(errorcode);
    const size_t length = std::min<size_t>(text.size(), MPI_MAX_ERROR_STRING - 1);
    std::memcpy(string, text.data(), length);
    string[length] = '\0';
    *resultlen = static_cast<int>(length);
    return {};
  });
}
WEFT_MPI_ALIAS(Error_string)

int PMPI_Add_error_class(int* errorclass) {
  return AtAnyTime("MPI_Add_error_class", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(errorclass, "errorclass"));
    return AddErrorClass(errorclass);
  });
}
WEFT_MPI_ALIAS(Add_error_class)

int PMPI_Add_error_code(int errorclass, int* errorcode) {
  return AtAnyTime("MPI_Add_error_code", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(errorcode, "errorcode"));
    return AddErrorCode(errorclass, errorcode);
  });
}
WEFT_MPI_ALIAS(Add_error_code)

int PMPI_Add_error_string(int errorcode, const char* string) {
  return AtAnyTime("MPI_Add_error_string", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(string, "string"));
    if (std::strlen(string) >= MPI_MAX_ERROR_STRING) {
      return Error(MPI_ERR_ARG, "string is longer than MPI_MAX_ERROR_STRING, " + std::to_string(MPI_MAX_ERROR_STRING));
    }
    return AddErrorString(errorcode, string);
  });
}
WEFT_MPI_ALIAS(Add_error_string)

int PMPIX_Delete_error_class(int errorclass) {
  return AtAnyTime("MPIX_Delete_error_class", [&] { return DeleteErrorClass(errorclass); });
}
WEFT_MPIX_ALIAS(Delete_error_class)

int PMPIX_Delete_error_code(int errorcode) {
  return AtAnyTime("MPIX_Delete_error_code", [&] { return DeleteErrorCode(errorcode); });
}
WEFT_MPIX_ALIAS(Delete_error_code)

int PMPIX_Delete_error_string(int errorcode) {
  return AtAnyTime("MPIX_Delete_error_string", [&] { return DeleteErrorString(errorcode); });
}
WEFT_MPIX_ALIAS(Delete_error_string)
