#ifndef MPI_HYBRID_P2P_IMPI_ENTER_JOB_H_
#define MPI_HYBRID_P2P_IMPI_ENTER_JOB_H_

#include "base/descriptor.h"
#include "impi/entry/welcome.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/job.h"

namespace weft::mpi {

// If the environment names an agent (impi/entry/hello.h), this process belongs to a client of an IMPI job: connects to the agent, and fills in `job.impi`,
// `job.impi_agent` and `job.impi_hosts`. Processes that were spawned belong to no client. Call it after JoinJob. MPI_ERR_OTHER: why the process is not in the job.
Error EnterImpiJob(Job& job);

// The same with the agent's answer, which `agent` leads to.
Error EnterImpiJob(Job& job, Descriptor agent, impi::Welcome welcome);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_IMPI_ENTER_JOB_H_
