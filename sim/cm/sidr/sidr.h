#ifndef SIM_CM_SIDR_SIDR_H_
#define SIM_CM_SIDR_SIDR_H_

#include <memory>

#include "base/result.h"
#include "sim/cm/api.h"
#include "transport/network.h"

namespace weft::sim {

// The connection manager's side of unreliable datagrams (sim/cm/sidr/message.h): a requester asks a port for the queue pair behind it, a
// listener's program answers. Both know no connection: after the answer nothing is left to end.

// Endpoint::Connect sends the request and repeats it until there is an answer (30 s without a sign of life: kUnreachable, ETIMEDOUT;
// nobody has the port: kUnreachable, ECONNREFUSED). The answer is kEstablished with number, Q_Key and private data, or kUnreachable with
// the status. Its `qp` is not used. The network outlives it.
std::shared_ptr<Endpoint> MakeSidrRequester(transport::Network& network);

// Each new request is a kConnectRequest with an Endpoint that takes Accept (with ConnectParameters::number and qkey; `qp` is not used) or Reject.
// Requests beyond `backlog` that wait for an answer are dropped: the requester repeats them.
Result<std::shared_ptr<CmListener>, int> ListenForSidr(transport::Network& network, const transport::SocketAddress& local, int backlog,
                                                       bool only_v6, bool reuse_address, std::shared_ptr<CmObserver> observer);

}  // namespace weft::sim

#endif  // SIM_CM_SIDR_SIDR_H_
