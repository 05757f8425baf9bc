#ifndef WIRES_SCTP_HANDSHAKE_INITIATOR_H_
#define WIRES_SCTP_HANDSHAKE_INITIATOR_H_

#include <functional>
#include <memory>

#include "llp/handshake.h"
#include "wires/sctp/handshake/wire.h"

namespace weft::sctp {

// Finds or makes an association, and asks for a session on it.
class Initiator final : public llp::Initiator {
 public:
  Initiator(Wire& wire, const transport::SocketAddress& local, const transport::SocketAddress& remote,
            llp::Proposal ours)
      : wire_(wire), local_(local), remote_(remote), ours_(std::move(ours)) {}

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override;
  llp::Progress Advance() override;
  void Abandon() override;
  bool FallBack() override { return std::exchange(enhanced_, false); }
  void Refuse(const std::function<void(llp::UlpduWriter&)>& last) override;
  std::unique_ptr<llp::Channel> TakeChannel() override;
  const char* missing() const override {
    return association_ == nullptr ? "no answer to the search for the peer's UDP port" : seat_ == nullptr ? "no answer to the SCTP association request" : "no answer to the DDP session request";
  }
  transport::SocketAddress LocalAddress() const override;
  transport::SocketAddress PeerAddress() const override { return remote_; }

 private:
  void Use(std::shared_ptr<Association> association);
  int Search();
  llp::Progress Located();
  llp::Progress Ask();
  llp::Progress OnAnswer();

  Wire& wire_;
  const transport::SocketAddress local_, remote_;
  const llp::Proposal ours_;
  bool enhanced_ = true;
  std::shared_ptr<transport::ReadyHandler> handler_;
  std::shared_ptr<LocatorSearch> search_;     // for the peer's UDP port
  // With an association directly over IP: from this time on it counts that the search gets no answer.
  transport::Time refused_from_{};
  uint16_t udp_port_ = 0;                     // the peer's; 0: directly over IP
  int ports_tried_ = 0;                       // number of ports that other processes had
  std::shared_ptr<Association> association_;  // both null: there is no attempt
  std::unique_ptr<Seat> seat_;                // set when the session was requested
};

}  // namespace weft::sctp

#endif  // WIRES_SCTP_HANDSHAKE_INITIATOR_H_
