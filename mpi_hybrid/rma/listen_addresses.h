#ifndef MPI_HYBRID_RMA_LISTEN_ADDRESSES_H_
#define MPI_HYBRID_RMA_LISTEN_ADDRESSES_H_

#include <string>
#include <vector>

#include "transport/socket_address.h"

namespace weft::mpi::rma {

// Where to listen for RDMA connections, the best first; each once, all with port 0. `hosts`: numeric addresses that the
// job knows this host by. `interfaces`: its interfaces' addresses, for where none of those has an RDMA device; of them
// the loopback's only in a job of one host, since ranks elsewhere would find themselves there.
std::vector<transport::SocketAddress> ListenAddresses(const std::vector<std::string>& hosts,
                                                      const std::vector<transport::SocketAddress>& interfaces,
                                                      bool one_host);

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_LISTEN_ADDRESSES_H_
