#ifndef MPI_HYBRID_CORE_HOST_ADDRESS_H_
#define MPI_HYBRID_CORE_HOST_ADDRESS_H_

#include <string>

#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// The numeric address that the other ranks reach this process by: WEFT_MPI_HOST (an address, a host name or the name of an
// interface), else 127.0.0.1 when all ranks are on this host, else the address that leads to the launcher (PMI_PORT), else that
// of the first interface that is up and is not the loopback; IPv4 before IPv6. MPI_ERR_OTHER when WEFT_MPI_HOST means nothing.
Error FindHostAddress(bool one_host, std::string* address);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_HOST_ADDRESS_H_
