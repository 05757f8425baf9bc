#ifndef MPI_HYBRID_DATATYPE_OP_KERNELS_H_
#define MPI_HYBRID_DATATYPE_OP_KERNELS_H_

#include <mpi.h>

namespace weft::mpi {

// inout[i] = in[i] op inout[i]. The arrays are aligned and do not overlap.
using Kernel = void (*)(const void* in, void* inout, MPI_Aint count);

// Null: `op` (MPI_MAX to MPI_MAXLOC) is not defined for the basic type.
Kernel FindKernel(MPI_Op op, MPI_Datatype basic);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DATATYPE_OP_KERNELS_H_
