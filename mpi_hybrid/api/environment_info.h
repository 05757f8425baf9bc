#ifndef MPI_HYBRID_API_ENVIRONMENT_INFO_H_
#define MPI_HYBRID_API_ENVIRONMENT_INFO_H_

namespace weft::mpi {

// Fills MPI_INFO_ENV with information on how this process was started (MPI 4.0 section 11.2.1).
void FillEnvironmentInfo();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_ENVIRONMENT_INFO_H_
