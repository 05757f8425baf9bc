#ifndef MPI_HYBRID_CORE_ERROR_HANDLER_H_
#define MPI_HYBRID_CORE_ERROR_HANDLER_H_

#include <mpi.h>

#include <string>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/handle.h"
#include "mpi_hybrid/core/ref.h"

namespace weft::mpi {

// MPI_Errhandler: predefined (fatal, return, abort) or the user's.
struct ErrorHandler : RefCounted<ErrorHandler> {
  enum class Kind : uint8_t { kFatal, kReturn, kAbort, kComm, kWin, kFile, kSession };

  MPI_Errhandler handle = MPI_ERRHANDLER_NULL;
  Kind kind = Kind::kFatal;
  void (*function)(int* object, int* code, ...) = nullptr;                            // called with the object's handle
  bool fortran = false;                                                               // arguments by reference, no variadic part
  void (*cxx_proxy)(int kind, int* object, int* code, void (*function)()) = nullptr;  // MPII_Errhandler_set_cxx

  static ErrorHandler* Find(MPI_Errhandler handle);

  ErrorHandler() = default;
  ~ErrorHandler();
};

// A new one of the user's, with a reference for its handle. MPI_Errhandler_free releases one, MPI_Comm_get_errhandler adds one;
// the handle means the object for as long as anything holds it. Predefined ones live forever.
ErrorHandler& MakeErrorHandler(ErrorHandler::Kind kind, void (*function)(int*, int*, ...));
ErrorHandler& FatalErrorHandler();   // MPI_ERRORS_ARE_FATAL
ErrorHandler& ReturnErrorHandler();  // MPI_ERRORS_RETURN
// Of MPI_FILE_NULL; MPI_ERRORS_RETURN until MPI_File_set_errhandler.
ErrorHandler& FileErrorHandler();
void SetFileErrorHandler(const Ref<ErrorHandler>& handler);

// Makes the error code of an error: the class in the low 7 bits, above it the number of its message in a ring of the
// last 4096, so that MPI_Error_string tells more than the class. A class of MPI_Add_error_class and a code of
// MPI_Add_error_code, which an error may have for a class when the program's own function returned it, are their own
// codes.
int MakeErrorCode(const Error& error);
int ErrorClassOf(int code);  // MPI_ERR_UNKNOWN when it is not an error code
bool IsErrorCode(int code);
bool IsErrorClass(int mpi_class);  // of the standard or MPICH's, not added
bool IsAddedCode(int code);        // by MPI_Add_error_class or _code
// The message of a code of MakeErrorCode or MPI_Add_error_string, else that of its class.
std::string ErrorString(int code);
const char* ErrorClassString(int mpi_class);  // "MPI_ERR_RANK: invalid rank" ...

// MPI_Add_error_class, _code, _string and MPICH's removers. Added classes and codes are above MPI_ERR_LASTCODE (MPI 4.0
// section 9.5).
Error AddErrorClass(int* error_class);
Error AddErrorCode(int error_class, int* code);
Error AddErrorString(int code, const std::string& text);
Error DeleteErrorClass(int error_class);
Error DeleteErrorCode(int code);
Error DeleteErrorString(int code);
int LastUsedCode();  // MPI_LASTUSEDCODE

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_ERROR_HANDLER_H_
