#ifndef IMPI_JOB_RANKS_H_
#define IMPI_JOB_RANKS_H_

#include <cstdint>

#include "base/strong_id.h"

// The numbers of a job; each begins at 0. Clients ascend as their users numbered them, the hosts of a client stand together, and so do the processes of a
// host (IMPI 0.0, section 2.3.5).
namespace weft::impi {

using ClientRank = StrongId<struct ClientRankTag, int32_t>;
using HostRank = StrongId<struct HostRankTag, int32_t>;    // of all hosts of the job
using WorldRank = StrongId<struct WorldRankTag, int32_t>;  // of a process, in the common MPI_COMM_WORLD

}  // namespace weft::impi

#endif  // IMPI_JOB_RANKS_H_
