#ifndef MPI_HYBRID_P2P_ENGINE_PACKED_H_
#define MPI_HYBRID_P2P_ENGINE_PACKED_H_

#include <mpi.h>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"

namespace weft::mpi {

// Whether data of `type` are in external32 as they are: what MPI_Pack made for a communicator that spans clients of an IMPI job. Its receiver may
// have another type for it, also within a client, to whose processes all other data go as they are in memory.
inline bool IsPackedForClients(const Datatype& type, const Comm& comm) { return comm.clients != nullptr && type.OnlyBasic() == MPI_PACKED; }

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_ENGINE_PACKED_H_
