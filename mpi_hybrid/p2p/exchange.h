#ifndef MPI_HYBRID_P2P_EXCHANGE_H_
#define MPI_HYBRID_P2P_EXCHANGE_H_

#include <mpi.h>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// A send and a receive as one request, whose status is the receive's (MPI 4.0 section 3.10).
struct ExchangeSend {
  const void* buffer;
  MPI_Aint count;
  const Datatype* type;
  int destination, tag;
};
struct ExchangeReceive {
  void* buffer;
  MPI_Aint count;
  const Datatype* type;
  int source, tag;
};
// Waits for both; `status` is that of the receive.
Error Exchange(const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, MPI_Status* status);
Error StartExchange(const ExchangeSend& send, const ExchangeReceive& receive, Comm& comm, Request** request);
// Sends a copy of the buffer's contents and receives into the buffer.
Error StartExchangeInPlace(const ExchangeReceive& receive, int destination, int send_tag, Comm& comm, Request** request);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_EXCHANGE_H_
