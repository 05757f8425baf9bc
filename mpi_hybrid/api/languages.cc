#include <string>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/language_hooks.h"
#include "mpi_hybrid/api/report.h"

using namespace weft::mpi;

// --- objects with an address ---

namespace {
// Different from every array of weights, and from each other.
int g_unweighted, g_weights_empty, g_all_handles;
}  // namespace

extern "C" {
int* const MPI_UNWEIGHTED = &g_unweighted;
int* const MPI_WEIGHTS_EMPTY = &g_weights_empty;
int* MPIR_C_MPI_UNWEIGHTED = nullptr;  // see SetLanguageObjects
int* MPIR_C_MPI_WEIGHTS_EMPTY = nullptr;

// Set by libmpichfort.so.12 to what mpif.h calls MPI_STATUS_IGNORE.
MPI_Fint* MPI_F_STATUS_IGNORE = nullptr;
MPI_Fint* MPI_F_STATUSES_IGNORE = nullptr;

MPI_F08_status MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status MPIR_F08_MPI_STATUSES_IGNORE_OBJ[1];
MPI_F08_status* MPI_F08_STATUS_IGNORE = &MPIR_F08_MPI_STATUS_IGNORE_OBJ;
MPI_F08_status* MPI_F08_STATUSES_IGNORE = MPIR_F08_MPI_STATUSES_IGNORE_OBJ;
int MPIR_F08_MPI_IN_PLACE;
int MPIR_F08_MPI_BOTTOM;

struct MPIR_T_pvar_handle_s* const MPI_T_PVAR_ALL_HANDLES = reinterpret_cast<struct MPIR_T_pvar_handle_s*>(&g_all_handles);

// Not longer than in MPICH 4.0.2: a program that refers to them has room for those (copy relocations).
const char MPII_Version_string[] = MPICH_VERSION;
const char MPII_Version_date[] = "see Weft";
const char MPII_Version_ABI[] = "14:2:2";
const char MPII_Version_device[] = "weft";
const char MPII_Version_configure[] = "none: this is Weft, which keeps the ABI of MPICH";
const char MPII_Version_CC[] = "cc";
const char MPII_Version_CXX[] = "c++";
const char MPII_Version_F77[] = "gfortran";
const char MPII_Version_FC[] = "gfortran";
const char MPII_Version_custom[] = "";
}

namespace weft::mpi {

void SetLanguageObjects() {
  MPIR_C_MPI_UNWEIGHTED = MPI_UNWEIGHTED;
  MPIR_C_MPI_WEIGHTS_EMPTY = MPI_WEIGHTS_EMPTY;
}

}  // namespace weft::mpi

// --- hooks ---

void MPII_Errhandler_set_cxx(MPI_Errhandler handle, void (*proxy)(void)) {
  LockGuard lock;
  ErrorHandler* handler = ErrorHandler::Find(handle);
  if (handler != nullptr) handler->cxx_proxy = reinterpret_cast<decltype(handler->cxx_proxy)>(proxy);
}

void MPII_Op_set_cxx(MPI_Op handle, void (*proxy)(void)) {
  LockGuard lock;
  Op* op = Op::Find(handle);
  if (op == nullptr) return;
  op->language = Op::Language::kCxx;
  op->cxx_proxy = reinterpret_cast<decltype(op->cxx_proxy)>(proxy);
}

int MPIR_Err_create_code(int last_code, int, const char function[], int line, int error_class, const char generic[], const char[],
                         ...) {
  LockGuard lock;
  const int mpi_class = IsErrorClass(error_class) && error_class != MPI_SUCCESS ? error_class : ErrorClassOf(last_code);
  if (mpi_class == MPI_SUCCESS) return MPI_SUCCESS;
  std::string message = std::string(function != nullptr ? function : "?") + " line " + std::to_string(line);
  if (generic != nullptr) message += std::string(": ") + generic;
  return MakeErrorCode(Error(mpi_class, message));
}

namespace {
int ReturnCode(const char* function, int code) {
  LockGuard lock;
  return ReportCodeAnywhere(function != nullptr ? function : "MPI", code);
}
}  // namespace

int MPIR_Err_return_comm(void*, const char function[], int code) { return ReturnCode(function, code); }
int MPIR_Err_return_win(void*, const char function[], int code) { return ReturnCode(function, code); }
