#include "mpi_hybrid/core/error_handler.h"

namespace weft::mpi {
namespace {

HandleTable<ErrorHandler>& ErrorHandlers() {
  static auto* table = new HandleTable<ErrorHandler>(HandleKind::kErrhandler);
  return *table;
}

ErrorHandler* MakePredefined(MPI_Errhandler handle, ErrorHandler::Kind kind) {
  auto* made = new ErrorHandler;
  made->AddRef();
  made->handle = handle;
  made->kind = kind;
  return made;
}

ErrorHandler& AbortErrorHandler() {
  static ErrorHandler* handler = MakePredefined(MPI_ERRORS_ABORT, ErrorHandler::Kind::kAbort);
  return *handler;
}

// MPICH's C++ library means by it that its own proxy throws; the library itself only returns the code.
ErrorHandler& ThrowErrorHandler() {
  static ErrorHandler* handler = MakePredefined(MPIR_ERRORS_THROW_EXCEPTIONS, ErrorHandler::Kind::kReturn);
  return *handler;
}

Ref<ErrorHandler>& OfFiles() {
  static auto* handler = new Ref<ErrorHandler>(&ReturnErrorHandler());
  return *handler;
}

}  // namespace

ErrorHandler::~ErrorHandler() {
  if (IsMade(handle)) ErrorHandlers().Remove(handle);
}

ErrorHandler* ErrorHandler::Find(MPI_Errhandler handle) {
  switch (handle) {
    case MPI_ERRORS_ARE_FATAL:
      return &FatalErrorHandler();
    case MPI_ERRORS_RETURN:
      return &ReturnErrorHandler();
    case MPI_ERRORS_ABORT:
      return &AbortErrorHandler();
    case MPIR_ERRORS_THROW_EXCEPTIONS:
      return &ThrowErrorHandler();
    default:
      return ErrorHandlers().Find(handle);
  }
}

ErrorHandler& MakeErrorHandler(ErrorHandler::Kind kind, void (*function)(int*, int*, ...)) {
  auto* made = new ErrorHandler;
  made->AddRef();
  made->handle = ErrorHandlers().Add(made);
  made->kind = kind;
  made->function = function;
  return *made;
}

ErrorHandler& FatalErrorHandler() {
  static ErrorHandler* handler = MakePredefined(MPI_ERRORS_ARE_FATAL, ErrorHandler::Kind::kFatal);
  return *handler;
}

ErrorHandler& ReturnErrorHandler() {
  static ErrorHandler* handler = MakePredefined(MPI_ERRORS_RETURN, ErrorHandler::Kind::kReturn);
  return *handler;
}

ErrorHandler& FileErrorHandler() { return *OfFiles(); }
void SetFileErrorHandler(const Ref<ErrorHandler>& handler) { OfFiles() = handler; }

}  // namespace weft::mpi
