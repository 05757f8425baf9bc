#ifndef WIRES_MPA_HANDSHAKE_INITIATOR_H_
#define WIRES_MPA_HANDSHAKE_INITIATOR_H_

#include <functional>
#include <memory>
#include <vector>

#include "wires/mpa/handshake/session.h"

namespace weft::mpa {

// Connects, sends the MPA Request and reads the Reply.
class Initiator final : public llp::Initiator {
 public:
  Initiator(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings,
            const transport::SocketAddress& local, const transport::SocketAddress& remote, llp::Proposal ours);

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override;
  llp::Progress Advance() override;
  void Abandon() override { session_.Abort(); }
  bool FallBack() override;
  void Refuse(const std::function<void(llp::UlpduWriter&)>& last) override;
  std::unique_ptr<llp::Channel> TakeChannel() override;
  const char* missing() const override {
    return state_ == State::kConnecting ? "no answer to the TCP connection request" : "no MPA reply";
  }
  transport::SocketAddress LocalAddress() const override;
  transport::SocketAddress PeerAddress() const override { return remote_; }

 private:
  enum class State : uint8_t { kConnecting, kSendingRequest, kAwaitingReply };
  llp::Progress Connected();
  void MakeRequest();
  bool SendRequest(llp::Progress* failure);  // false: part of it is not sent, or the attempt is over
  llp::Progress OnReply();

  Session session_;
  const transport::SocketAddress bind_to_, remote_;
  const llp::Proposal ours_;
  uint8_t revision_;
  State state_ = State::kConnecting;
  StartParams params_;
  std::vector<uint8_t> unsent_;  // part of the MPA Request
  StartOutcome outcome_;
};

}  // namespace weft::mpa

#endif  // WIRES_MPA_HANDSHAKE_INITIATOR_H_
