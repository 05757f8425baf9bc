#ifndef MPI_HYBRID_API_LANGUAGE_HOOKS_H_
#define MPI_HYBRID_API_LANGUAGE_HOOKS_H_

#include <mpi.h>

#include "mpi_hybrid/core/attributes.h"

// Functions that libmpichfort.so.12 and libmpichcxx.so.12 of MPICH 4.0 import in addition to MPI's own. `type`: an
// AttributeType.
extern "C" {
int MPII_Comm_get_attr(MPI_Comm comm, int keyval, void* value, int* flag, int type);
int MPII_Type_get_attr(MPI_Datatype datatype, int keyval, void* value, int* flag, int type);
int MPII_Win_get_attr(MPI_Win win, int keyval, void* value, int* flag, int type);
int MPII_Comm_set_attr(MPI_Comm comm, int keyval, void* value, int type);
int MPII_Type_set_attr(MPI_Datatype datatype, int keyval, void* value, int type);
int MPII_Win_set_attr(MPI_Win win, int keyval, void* value, int type);
void MPII_Keyval_set_proxy(int keyval, weft::mpi::Keyval::CopyProxy* copy_proxy, weft::mpi::Keyval::DeleteProxy* delete_proxy);

// From now on the function of the handler or operation is called through `proxy` (its type: ErrorHandler::cxx_proxy,
// Op::cxx_proxy).
void MPII_Errhandler_set_cxx(MPI_Errhandler handler, void (*proxy)(void));
void MPII_Op_set_cxx(MPI_Op op, void (*proxy)(void));
// The functions of the generalized request have Fortran's calling sequence.
void MPII_Grequest_set_lang_f77(MPI_Request request);

// MPICH exports these for layers on top of it, such as its MPI-IO. `comm` and `win` are objects inside MPICH, which do
// not exist in this library.
int MPIR_Err_create_code(int last_code, int fatal, const char function[], int line, int error_class, const char generic[],
                         const char specific[], ...);
int MPIR_Err_return_comm(void* comm, const char function[], int code);
int MPIR_Err_return_win(void* win, const char function[], int code);

extern int* MPIR_C_MPI_UNWEIGHTED;
extern int* MPIR_C_MPI_WEIGHTS_EMPTY;
extern const char MPII_Version_string[], MPII_Version_date[], MPII_Version_ABI[], MPII_Version_device[], MPII_Version_configure[],
    MPII_Version_CC[], MPII_Version_CXX[], MPII_Version_F77[], MPII_Version_FC[], MPII_Version_custom[];
}

namespace weft::mpi {

// Called by MPI_Init. libmpichfort.so.12 has variables of the same names. They precede ours in the order of symbol
// look-up, and only this library sets them.
void SetLanguageObjects();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_LANGUAGE_HOOKS_H_
