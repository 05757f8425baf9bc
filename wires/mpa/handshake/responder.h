#ifndef WIRES_MPA_HANDSHAKE_RESPONDER_H_
#define WIRES_MPA_HANDSHAKE_RESPONDER_H_

#include <memory>
#include <vector>

#include "wires/mpa/handshake/session.h"

namespace weft::mpa {

// Reads the MPA Request on an accepted stream, and answers it.
class Responder final : public llp::Responder {
 public:
  Responder(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings,
            std::unique_ptr<transport::ByteStream> stream);

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override;
  llp::Progress Advance() override;
  void Abandon() override { session_.Abort(); }
  Result<llp::Agreement, int> Accept(llp::Proposal ours) override;
  int Reject(const std::vector<uint8_t>& private_data, const llp::Claims* claims) override;
  std::unique_ptr<llp::Channel> TakeChannel() override;
  const char* missing() const override {
    return requested_ ? "its MPA request was not answered" : "no complete MPA request";
  }
  transport::SocketAddress LocalAddress() const override { return local_; }
  transport::SocketAddress PeerAddress() const override { return remote_; }

 private:
  llp::Progress Waits();

  Session session_;
  const transport::SocketAddress local_, remote_;
  bool requested_ = false;
  // The answer.
  llp::Proposal ours_;
  StartOutcome outcome_;
  std::vector<uint8_t> reply_;
};

}  // namespace weft::mpa

#endif  // WIRES_MPA_HANDSHAKE_RESPONDER_H_
