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
  void (*function)(int* object, int* code, ...) = nullptr;  // called with the object's handle
  bool fortran = false;                                     // arguments by reference, no variadic part
  void (*cxx_proxy)(int kind, int* object, int* code, void (*function)()) = nullptr;  // MPII_Errhandler_set_cxx

  static ErrorHandler* Find(MPI_Errhandler handle);
};

// Makes the error code of an error: the class in the low 7 bits, above it the number of its message in a ring of the last 4096, so that
// MPI_Error_string tells more than the class.
int MakeErrorCode(const Error& error);
int ErrorClassOf(int code);
// The message of a code of MakeErrorCode or MPI_Add_error_string, else that of its class.
std::string ErrorString(int code);
const char* ErrorClassString(int mpi_class);  // "MPI_ERR_RANK: invalid rank" ...

// MPI_Add_error_class, _code, _string and the MPIX removers. Dynamic classes start above MPICH_ERR_LAST_MPIX.
Error AddErrorClass(int* error_class);
Error AddErrorCode(int error_class, int* code);
Error AddErrorString(int code, const std::string& text);
int LastUsedCode();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_ERROR_HANDLER_H_
