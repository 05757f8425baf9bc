#ifndef MPI_HYBRID_CORE_JOB_VERSION_H_
#define MPI_HYBRID_CORE_JOB_VERSION_H_

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/job.h"

namespace weft::mpi {

// All processes of a job must have the same version of this library, because what they say to each other belongs to no
// standard and changes between versions. Each rank publishes its version, and compares it with that of the next rank (of
// rank 0, if it is the last one). If the versions of a job differ anywhere, at least one rank finds another version at the
// next rank, and its MPI_Init fails. This holds also if the other version is so old that it
// does not compare.

// Before a fence of the job.
Error PublishVersion(Job& job);
// After that fence.
Error CompareVersion(Job& job);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_JOB_VERSION_H_
