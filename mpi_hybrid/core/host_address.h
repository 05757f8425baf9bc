#ifndef MPI_HYBRID_CORE_HOST_ADDRESS_H_
#define MPI_HYBRID_CORE_HOST_ADDRESS_H_

#include <string>
#include <vector>

#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// The numeric addresses that the other ranks may reach this process by, the likeliest first: the one of WEFT_MPI_HOST (an address, a host name
// or the name of an interface), else 127.0.0.1 when all ranks are on this host, else the address that leads to the launcher (PMI_PORT), then
// those of the interfaces that are up and not the loopback; such as have a carrier first, IPv4 before IPv6. MPI_ERR_OTHER when WEFT_MPI_HOST
// means nothing.
Error FindHostAddresses(bool one_host, std::vector<std::string>* addresses);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_HOST_ADDRESS_H_
