#ifndef MPI_HYBRID_CORE_HOST_ADDRESS_H_
#define MPI_HYBRID_CORE_HOST_ADDRESS_H_

#include <string>
#include <vector>

#include "mpi_hybrid/core/error.h"

namespace weft::mpi {

// Finds the numeric addresses at which other ranks may reach this process, the likeliest first:
// - the address of WEFT_MPI_HOST (an address, a host name or the name of an interface), if it is set;
// - else 127.0.0.1, if all ranks are on this host;
// - else the local address of the route to the launcher (PMI_PORT), then the addresses of the interfaces that are up,
//   without the loopback: interfaces with a carrier first, IPv4 before IPv6.
// MPI_ERR_OTHER: WEFT_MPI_HOST is neither an address nor a name that can be resolved.
Error FindHostAddresses(bool one_host, std::vector<std::string>* addresses);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_HOST_ADDRESS_H_
