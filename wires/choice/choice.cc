#include "wires/choice/choice.h"

#include <cerrno>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/log.h"

namespace weft {
namespace {

using transport::SocketAddress;

// How many ports are tried where any will do: one that is free for the second may not be for the first.
constexpr int kPortAttempts = 16;

// Over the first until the peer was reached, or could not be.
class FallingBack final : public llp::Initiator {
 public:
  FallingBack(transport::Network& network, std::unique_ptr<llp::Initiator> first, std::unique_ptr<llp::Initiator> second)
      : network_(network), first_(std::move(first)), second_(std::move(second)) {}
  ~FallingBack() override { StopTimer(); }

  int Begin(std::shared_ptr<transport::ReadyHandler> handler) override {
    if (current_ == first_.get() && !reached_) {
      handler_ = handler;
      if (first_->Begin(std::move(handler)) == 0) {
        give_up_ = network_.Now() + kFirstWireLimit;
        timer_ = network_.RunAt(give_up_, [weak = std::weak_ptr(handler_)] {
          if (const auto alive = weak.lock()) alive->OnReady({.read = true, .write = true});
        });
        return 0;
      }
      return BeginSecond();
    }
    return current_->Begin(std::move(handler));
  }

  llp::Progress Advance() override {
    using Kind = llp::Progress::Kind;
    llp::Progress progress = current_->Advance();
    if (current_ != first_.get() || reached_) return progress;
    if (progress.kind == Kind::kUnreachable || (progress.kind == Kind::kNothing && timer_ != 0 && network_.Now() >= give_up_)) {
      first_->Abandon();
      const int error = BeginSecond();
      if (error == 0) return {};
      return {.kind = Kind::kUnreachable, .error = error, .why = std::strerror(error)};
    }
    if (progress.kind != Kind::kNothing) {
      StopTimer();
      reached_ = true;  // whatever comes now is the peer's word
      handler_.reset();
    }
    return progress;
  }

  void Abandon() override {
    StopTimer();
    current_->Abandon();
    if (!reached_) current_ = first_.get();  // the next attempt begins anew
  }

  std::unique_ptr<llp::Channel> TakeChannel() override { return current_->TakeChannel(); }
  const char* missing() const override { return current_->missing(); }
  SocketAddress LocalAddress() const override { return current_->LocalAddress(); }
  SocketAddress PeerAddress() const override { return current_->PeerAddress(); }
  bool FallBack() override { return current_->FallBack(); }
  void Refuse(const std::function<void(llp::UlpduWriter&)>& last) override { current_->Refuse(last); }

 private:
  int BeginSecond() {
    StopTimer();
    current_ = second_.get();
    return second_->Begin(std::exchange(handler_, nullptr));
  }
  void StopTimer() {
    if (timer_ != 0) network_.Cancel(std::exchange(timer_, 0));
  }

  transport::Network& network_;
  const std::unique_ptr<llp::Initiator> first_, second_;
  llp::Initiator* current_ = first_.get();
  bool reached_ = false;  // over the first
  std::shared_ptr<transport::ReadyHandler> handler_;
  transport::Time give_up_{};
  transport::TimerId timer_ = 0;
};

class BothListeners final : public llp::Listener {
 public:
  // `first` may be null.
  BothListeners(std::unique_ptr<llp::Listener> first, std::unique_ptr<llp::Listener> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  void Watch(std::shared_ptr<transport::ReadyHandler> handler) override {
    if (first_ != nullptr) first_->Watch(handler);
    second_->Watch(std::move(handler));
  }
  Result<std::unique_ptr<llp::Responder>, int> Accept() override {
    if (first_ == nullptr) return second_->Accept();
    // In turns: a flood over one leaves room for the other.
    first_is_next_ = !first_is_next_;
    llp::Listener &one = first_is_next_ ? *second_ : *first_, &other = first_is_next_ ? *first_ : *second_;
    auto accepted = one.Accept();
    return accepted.ok() || accepted.error() != EAGAIN ? std::move(accepted) : other.Accept();
  }
  SocketAddress LocalAddress() const override { return second_->LocalAddress(); }

 private:
  const std::unique_ptr<llp::Listener> first_, second_;
  bool first_is_next_ = false;
};

class Choice final : public llp::Wire {
 public:
  Choice(transport::Network& network, std::unique_ptr<llp::Wire> first, std::unique_ptr<llp::Wire> second, Connecting connecting)
      : network_(network), first_(std::move(first)), second_(std::move(second)), connecting_(connecting) {}

  Result<std::unique_ptr<llp::Initiator>, int> Connect(const SocketAddress& local, const SocketAddress& remote,
                                                       llp::Proposal ours) override {
    if (connecting_ == Connecting::kFirst) return first_->Connect(local, remote, std::move(ours));
    auto first = first_->Connect(local, remote, ours);
    auto second = second_->Connect(local, remote, std::move(ours));
    if (!first.ok() || !second.ok()) return first.ok() ? std::move(first) : std::move(second);
    return std::unique_ptr<llp::Initiator>(std::make_unique<FallingBack>(network_, std::move(*first), std::move(*second)));
  }

  Result<std::unique_ptr<llp::Listener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                     bool reuse_address) override {
    for (int attempt = 1;; ++attempt) {
      auto second = second_->Listen(local, backlog, only_v6, reuse_address);
      if (!second.ok()) return second.error();
      const SocketAddress at = (*second)->LocalAddress();
      auto first = first_->Listen(at, backlog, only_v6, reuse_address);
      if (first.ok()) {
        return std::unique_ptr<llp::Listener>(std::make_unique<BothListeners>(std::move(*first), std::move(*second)));
      }
      if (first.error() == EADDRINUSE && local.port() == 0 && attempt < kPortAttempts) continue;
      if (connecting_ == Connecting::kFirst) return first.error();
      LogWarning(Format("no listener at %s on the preferred transport: %s", at.ToString().c_str(), std::strerror(first.error())));
      return std::unique_ptr<llp::Listener>(std::make_unique<BothListeners>(nullptr, std::move(*second)));
    }
  }

  Result<std::unique_ptr<llp::Channel>, int> OpenLoop(const SocketAddress& local, const llp::Proposal& ours) override {
    auto loop = first_->OpenLoop(local, ours);  // no peer that could see which
    return loop.ok() || loop.error() != EOPNOTSUPP ? std::move(loop) : second_->OpenLoop(local, ours);
  }
  bool listeners_take_udp_port() const override { return first_->listeners_take_udp_port() || second_->listeners_take_udp_port(); }
  std::vector<llp::PathState> Paths() override { return first_->Paths(); }

 private:
  transport::Network& network_;
  const std::unique_ptr<llp::Wire> first_, second_;
  const Connecting connecting_;
};

}  // namespace

std::unique_ptr<llp::Wire> MakeChoice(transport::Network& network, std::unique_ptr<llp::Wire> first, std::unique_ptr<llp::Wire> second,
                                      Connecting connecting) {
  return std::make_unique<Choice>(network, std::move(first), std::move(second), connecting);
}

}  // namespace weft
