#ifndef WIRES_MPA_HANDSHAKE_WIRE_H_
#define WIRES_MPA_HANDSHAKE_WIRE_H_

#include <memory>

#include "base/buffer_pool.h"
#include "base/settings.h"
#include "llp/handshake.h"
#include "transport/network.h"
#include "wires/host/meeting/meeting_point.h"

namespace weft::mpa {

// MPA over the network's byte streams (RFC 5044, RFC 6581). All arguments outlive it and everything that it makes.
class Wire final : public llp::Wire {
 public:
  Wire(transport::Network& network, BufferPool& pool, const Settings& settings)
      : network_(network), pool_(pool), settings_(settings) {}

  Result<std::unique_ptr<llp::Initiator>, int> Connect(const transport::SocketAddress& local,
                                                       const transport::SocketAddress& remote,
                                                       llp::Proposal ours) override;
  Result<std::unique_ptr<llp::Listener>, int> Listen(const transport::SocketAddress& local, int backlog, bool only_v6,
                                                     bool reuse_address) override;
  Result<std::unique_ptr<llp::Channel>, int> OpenLoop(const transport::SocketAddress& local,
                                                      const llp::Proposal& ours) override;

 private:
  transport::Network& network_;
  BufferPool& pool_;
  const Settings& settings_;
  host::MeetingPoint meetings_;
};

}  // namespace weft::mpa

#endif  // WIRES_MPA_HANDSHAKE_WIRE_H_
