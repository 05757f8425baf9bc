#ifndef MPI_HYBRID_P2P_REQUEST_EXTERNAL_COUNT_H_
#define MPI_HYBRID_P2P_REQUEST_EXTERNAL_COUNT_H_

#include <mpi.h>

namespace weft::mpi {

// The count in the status of a probe has this bit when the message is in external32: it is in bytes of that, because only the type of the receive says how many
// they become. No message is as long. Statuses of receives never have it.
inline constexpr MPI_Count kExternalCount = MPI_Count{1} << 60;

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_EXTERNAL_COUNT_H_
