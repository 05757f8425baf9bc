#ifndef SIM_CM_SIDR_SIDR_H_
#define SIM_CM_SIDR_SIDR_H_

#include <memory>

#include "base/result.h"
#include "sim/cm/api.h"
#include "transport/network.h"

namespace weft::sim {

// Connection management for unreliable datagrams (sim/cm/sidr/message.h). A requester asks a port for the queue pair
// behind it; the listener's program answers. There is no connection: after the answer, nothing has to be ended.

// Endpoint::Connect sends the request and repeats it until there is an answer. Without a reply for 30 s the result is
// kUnreachable with ETIMEDOUT; if no program has the port, kUnreachable with ECONNREFUSED. The answer is kEstablished
// with number, Q_Key and private data, or kUnreachable with the status. The `qp` of Connect is not used. `network`
// outlives the endpoint.
std::shared_ptr<Endpoint> MakeSidrRequester(transport::Network& network);

// Each new request is a kConnectRequest with an Endpoint. Answer it with Accept (with ConnectParameters::number and
// qkey; `qp` is not used) or Reject. If more than `backlog` requests wait for an answer, further ones are dropped; the
// requester repeats them.
Result<std::shared_ptr<CmListener>, int> ListenForSidr(transport::Network& network, const transport::SocketAddress& local, int backlog,
                                                       bool only_v6, bool reuse_address, std::shared_ptr<CmObserver> observer);

}  // namespace weft::sim

#endif  // SIM_CM_SIDR_SIDR_H_
