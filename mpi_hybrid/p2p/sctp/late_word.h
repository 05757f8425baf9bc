#ifndef MPI_HYBRID_P2P_SCTP_LATE_WORD_H_
#define MPI_HYBRID_P2P_SCTP_LATE_WORD_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/sctp/sctp.h"

namespace weft::mpi::testing {

// SCTP for tests in which an accepted association is up before it reports that: the event comes after the first
// message.
class LateWordAssociation final : public transport::sctp::Association {
 public:
  using Received = transport::sctp::Received;
  explicit LateWordAssociation(std::unique_ptr<Association> real) : real_(std::move(real)) {}

  Received Receive(std::span<const iovec> into) override {
    if (late_ && heard_) return *std::exchange(late_, std::nullopt);
    Received received = real_->Receive(into);
    if (!heard_ && received.kind == Received::Kind::kEvent && received.event.kind == transport::sctp::Event::Kind::kUp) {
      late_ = received;
      received = real_->Receive(into);
    }
    heard_ |= received.kind == Received::Kind::kMessage;
    return received;
  }

  void Watch(std::shared_ptr<transport::ReadyHandler> handler) override { real_->Watch(std::move(handler)); }
  void SetReading(bool reading) override { real_->SetReading(reading); }
  transport::IoResult Send(const transport::sctp::OutgoingMessage& message) override { return real_->Send(message); }
  bool DamageNextPacket() override { return real_->DamageNextPacket(); }
  void Flush() override { real_->Flush(); }
  transport::Interest Poll() override { return real_->Poll(); }
  void Lend() override { real_->Lend(); }
  void Recall() override { real_->Recall(); }
  transport::WatchId PacketWatch() const override { return real_->PacketWatch(); }
  void Shutdown() override { real_->Shutdown(); }
  void Abort(const std::string& reason) override { real_->Abort(reason); }
  std::vector<transport::SocketAddress> LocalAddresses() const override { return real_->LocalAddresses(); }
  std::vector<transport::SocketAddress> PeerAddresses() const override { return real_->PeerAddresses(); }
  uint16_t PeerUdpPort() const override { return real_->PeerUdpPort(); }
  std::vector<transport::sctp::Path> Paths() const override { return real_->Paths(); }
  int SetPrimary(const transport::SocketAddress& path) override { return real_->SetPrimary(path); }
  size_t FragmentationPoint() const override { return real_->FragmentationPoint(); }
  bool HasUnacknowledged() const override { return real_->HasUnacknowledged(); }
  bool Advances() override { return real_->Advances(); }

 private:
  const std::unique_ptr<Association> real_;
  std::optional<Received> late_;
  bool heard_ = false;
};

class LateWordListener final : public transport::sctp::Listener {
 public:
  explicit LateWordListener(std::unique_ptr<Listener> real) : real_(std::move(real)) {}
  void Watch(std::shared_ptr<transport::ReadyHandler> handler) override { real_->Watch(std::move(handler)); }
  Result<std::unique_ptr<transport::sctp::Association>, int> Accept() override {
    auto accepted = real_->Accept();
    if (!accepted.ok()) return accepted;
    return std::unique_ptr<transport::sctp::Association>(std::make_unique<LateWordAssociation>(std::move(accepted).value()));
  }
  std::vector<transport::SocketAddress> LocalAddresses() const override { return real_->LocalAddresses(); }

 private:
  const std::unique_ptr<Listener> real_;
};

class LateWordSctp final : public transport::sctp::Sctp {
 public:
  using Association = transport::sctp::Association;
  using Listener = transport::sctp::Listener;
  using Settings = transport::sctp::Settings;
  explicit LateWordSctp(Sctp& real) : real_(real) {}
  Result<std::unique_ptr<Association>, int> Connect(const transport::sctp::Peer& peer, uint16_t local_port, const Settings& settings) override {
    return real_.Connect(peer, local_port, settings);
  }
  Result<std::unique_ptr<Listener>, int> Listen(const transport::SocketAddress& local, int backlog, const Settings& settings) override {
    auto made = real_.Listen(local, backlog, settings);
    if (!made.ok()) return made;
    return std::unique_ptr<Listener>(std::make_unique<LateWordListener>(std::move(made).value()));
  }
  uint16_t udp_port() const override { return real_.udp_port(); }
  bool native() const override { return real_.native(); }
  std::vector<std::vector<transport::sctp::Path>> AllPaths() const override { return real_.AllPaths(); }
  bool Poll(const Association* mine) override { return real_.Poll(mine); }

 private:
  Sctp& real_;
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_SCTP_LATE_WORD_H_
