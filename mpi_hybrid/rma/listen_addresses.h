#ifndef MPI_HYBRID_RMA_LISTEN_ADDRESSES_H_
#define MPI_HYBRID_RMA_LISTEN_ADDRESSES_H_

#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::mpi::rma {

// The addresses to listen at for RDMA connections, the best first, without duplicates, all with port 0. `hosts`:
// numeric addresses by which the job knows this host. `interfaces`: addresses of its interfaces, used if none of
// `hosts` has an RDMA device. The loopback address is used only in a job of one host, because ranks on other hosts
// would connect to themselves.
std::vector<transport::SocketAddress> ListenAddresses(const std::vector<std::string>& hosts,
                                                      const std::vector<transport::SocketAddress>& interfaces,
                                                      bool one_host);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_LISTEN_ADDRESSES_H_
