#ifndef WIRES_SCTP_HANDSHAKE_RESPONDER_H_
#define WIRES_SCTP_HANDSHAKE_RESPONDER_H_

#include <memory>
#include <string>
#include <vector>

#include "ddp/sctp/set_up_data.h"
#include "llp/handshake.h"
#include "wires/sctp/handshake/wire.h"

namespace weft::sctp {

// Answers a session request of a peer.
class Responder final : public llp::Responder {
 public:
  Responder(Wire& wire, std::unique_ptr<Seat> seat, transport::SocketAddress local, transport::SocketAddress remote)
      : wire_(wire), local_(std::move(local)), remote_(std::move(remote)), seat_(std::move(seat)) {}

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override;
  llp::Progress Advance() override;
  void Abandon() override { seat_.reset(); }
  Result<llp::Agreement, int> Accept(llp::Proposal ours) override;
  int Reject(const std::vector<uint8_t>& private_data, const llp::Claims* claims) override;
  std::unique_ptr<llp::Channel> TakeChannel() override;
  const char* missing() const override { return "its DDP session request was not answered"; }
  transport::SocketAddress LocalAddress() const override { return local_; }
  transport::SocketAddress PeerAddress() const override { return remote_; }

 private:
  Wire& wire_;
  const transport::SocketAddress local_, remote_;
  std::shared_ptr<transport::ReadyHandler> handler_;
  std::unique_ptr<Seat> seat_;  // null: the attempt is over
  bool requested_ = false;
  ddp::sctp::SetUpData request_;
  uint32_t queue_pair_ = 0;  // our queue pair, once accepted
  std::string device_;
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_HANDSHAKE_RESPONDER_H_
