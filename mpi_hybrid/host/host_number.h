#ifndef MPI_HYBRID_HOST_HOST_NUMBER_H_
#define MPI_HYBRID_HOST_HOST_NUMBER_H_

#include <cstdint>
#include <string>

namespace weft::mpi::host {

// A number that is equal for processes on one host, in one pid namespace and one network namespace (where bells ring)
// and of one user. It is no proof; it only avoids useless attempts. 0: it is not known.
uint64_t HostNumber();

// Of the running kernel. Empty: it cannot be read.
std::string BootId();

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_HOST_NUMBER_H_
