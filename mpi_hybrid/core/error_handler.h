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

// Makes an error handler for a function of the user; its handle holds one reference. MPI_Errhandler_free releases a
// reference, MPI_Comm_get_errhandler adds one. The handle stays valid as long as anything holds the object. Predefined
// handlers live forever.
ErrorHandler& MakeErrorHandler(ErrorHandler::Kind kind, void (*function)(int*, int*, ...));
ErrorHandler& FatalErrorHandler();   // MPI_ERRORS_ARE_FATAL
ErrorHandler& ReturnErrorHandler();  // MPI_ERRORS_RETURN
// The handler of MPI_FILE_NULL: MPI_ERRORS_RETURN until MPI_File_set_errhandler changes it.
ErrorHandler& FileErrorHandler();
void SetFileErrorHandler(const Ref<ErrorHandler>& handler);

// Makes the error code of an error. The low 7 bits hold the class. The bits above hold the number of the message, in a
// ring of the last 4096 messages, so that MPI_Error_string can return more than the class. A class of
// MPI_Add_error_class is its own code. So is a code of MPI_Add_error_code, which stands in place of the class when a
// function of the program returned it.
int MakeErrorCode(const Error& error);
int ErrorClassOf(int code);  // MPI_ERR_UNKNOWN if it is not an error code
bool IsErrorCode(int code);
bool IsErrorClass(int mpi_class);  // of the standard or of MPICH; not added ones
bool IsAddedCode(int code);        // by MPI_Add_error_class or MPI_Add_error_code
// The message of a code of MakeErrorCode or MPI_Add_error_string; for other codes, the message of the class.
std::string ErrorString(int code);
const char* ErrorClassString(int mpi_class);  // "MPI_ERR_RANK: invalid rank" ...

// MPI_Add_error_class, MPI_Add_error_code, MPI_Add_error_string and MPICH's functions that remove them. Added classes
// and codes are above MPI_ERR_LASTCODE (MPI 4.0 section 9.5).
Error AddErrorClass(int* error_class);
Error AddErrorCode(int error_class, int* code);
Error AddErrorString(int code, const std::string& text);
Error DeleteErrorClass(int error_class);
Error DeleteErrorCode(int code);
Error DeleteErrorString(int code);
int LastUsedCode();  // MPI_LASTUSEDCODE

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_ERROR_HANDLER_H_
