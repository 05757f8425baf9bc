#include <atomic>
#include <utility>

#include "wires/sctp/locator/locator.h"
#include "wires/sctp/locator/message.h"

namespace weft::sctp {
namespace {

constexpr int kDatagramsPerTurn = 64;

// Stays while a call of the network is under way.
class Answers final : public transport::ReadyHandler {
 public:
  explicit Answers(std::unique_ptr<transport::DatagramSocket> socket) : socket_(std::move(socket)) {}

  transport::DatagramSocket& socket() { return *socket_; }
  void set_udp_port(uint16_t port) { udp_port_ = port; }

  void OnReady(transport::Interest) override {
    for (int i = 0; i < kDatagramsPerTurn; ++i) {
      uint8_t bytes[LocatorMessage::kLength + 1];
      transport::IncomingDatagram question;
      question.room = {bytes, sizeof bytes};
      if (socket_->Receive({&question, 1}) == 0) return;
      const auto message = LocatorMessage::Parse({bytes, question.length});
      if (!message || message->type != LocatorMessage::Type::kQuestion) continue;
      if (message->sctp_port != socket_->LocalAddress().port()) continue;
      LocatorMessage answer = *message;
      answer.type = LocatorMessage::Type::kAnswer;
      answer.udp_port = udp_port_;
      auto reply = answer.Serialize();
      const iovec piece{reply.data(), reply.size()};
      // Not by the interface of the question: of what never left this host that is whichever has the address, where the asker, at the
      // loopback's, is not reached. Link-local addresses name theirs.
      const transport::OutgoingDatagram datagram{question.from, question.to, 0, {&piece, 1}};
      int error = 0;
      socket_->Send({&datagram, 1}, &error);  // lost: it is asked for again
    }
  }

 private:
  const std::unique_ptr<transport::DatagramSocket> socket_;
  std::atomic<uint16_t> udp_port_{0};
};

class Service final : public LocatorService {
 public:
  Service(transport::Network& network, std::unique_ptr<transport::DatagramSocket> socket)
      : network_(network), answers_(std::make_shared<Answers>(std::move(socket))) {}
  ~Service() override {
    if (watch_ != 0) network_.Unwatch(watch_);
  }
  transport::SocketAddress LocalAddress() const override { return answers_->socket().LocalAddress(); }
  void Start(uint16_t udp_port) override {
    answers_->set_udp_port(udp_port);
    watch_ = network_.Watch(answers_->socket(), {.read = true}, answers_);
  }

 private:
  transport::Network& network_;
  const std::shared_ptr<Answers> answers_;
  transport::WatchId watch_ = 0;
};

}  // namespace

Result<std::unique_ptr<LocatorService>, int> OpenLocatorService(transport::Network& network, const transport::SocketAddress& local,
                                                                bool only_v6) {
  auto socket = network.OpenDatagram(local, {.only_v6 = only_v6});
  if (!socket.ok()) return socket.error();
  return std::unique_ptr<LocatorService>(std::make_unique<Service>(network, std::move(*socket)));
}

}  // namespace weft::sctp
