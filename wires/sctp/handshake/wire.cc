#include "wires/sctp/handshake/wire.h"

#include <cerrno>
#include <vector>

#include "ddp/sctp/chunk.h"
#include "ddp/sctp/set_up_data.h"
#include "transport/sctp/environment.h"
#include "wires/sctp/handshake/initiator.h"
#include "wires/sctp/handshake/responder.h"
#include "wires/sctp/handshake/session_set_up.h"

namespace weft::sctp {
namespace {

using transport::SocketAddress;

// The associations that came to a listener, and who hears of requests on them.
class Incoming final : public transport::ReadyHandler, public std::enable_shared_from_this<Incoming> {
 public:
  Incoming(Wire& wire, std::unique_ptr<transport::sctp::Listener> listener, const SocketAddress& local)
      : wire_(wire), local_(local), listener_(std::move(listener)) {}

  void Start() {
    {
      const std::lock_guard lock(mutex_);
      for (auto& association : wire_.TakeLeft(local_)) Add(std::move(association));
    }
    listener_->Watch(std::make_shared<WeakHandler>(weak_from_this()));
  }

  void Watch(std::shared_ptr<transport::ReadyHandler> handler) {
    const std::lock_guard lock(mutex_);
    handler_ = std::move(handler);
  }
  // On the network's thread.
  void OnReady(transport::Interest) override {
    const std::lock_guard lock(mutex_);
    if (listener_ == nullptr) return;
    while (true) {
      auto accepted = listener_->Accept();
      if (!accepted.ok()) return;
      Add(Association::Make(wire_.network(), wire_.pool(), std::move(*accepted), /*initiator=*/false));
    }
  }
  Result<std::unique_ptr<llp::Responder>, int> Accept() {
    const std::lock_guard lock(mutex_);
    for (size_t i = 0; i < associations_.size();) {
      const std::shared_ptr<Association> association = associations_[i];
      const Association::Lock inner(*association);
      if (auto seat = association->TakeRequest()) {
        return std::unique_ptr<llp::Responder>(std::make_unique<Responder>(
            wire_, std::move(seat), First(association->local_addresses()), First(association->peer_addresses())));
      }
      if (association->state() == Association::State::kOver) {
        associations_.erase(associations_.begin() + static_cast<ptrdiff_t>(i));
      } else {
        ++i;
      }
    }
    return EAGAIN;
  }
  // Sessions that were taken keep their association.
  void Close() {
    const std::lock_guard lock(mutex_);
    for (const auto& association : associations_) {
      const Association::Lock inner(*association);
      association->SetOnRequest(nullptr);
    }
    wire_.Leave(local_, std::exchange(associations_, {}));
    listener_.reset();
    handler_.reset();
  }

 private:
  // A transport's listener keeps its handler.
  class WeakHandler final : public transport::ReadyHandler {
   public:
    explicit WeakHandler(std::weak_ptr<transport::ReadyHandler> handler) : handler_(std::move(handler)) {}
    void OnReady(transport::Interest ready) override {
      if (const auto alive = handler_.lock()) alive->OnReady(ready);
    }

   private:
    const std::weak_ptr<transport::ReadyHandler> handler_;
  };

  void Add(std::shared_ptr<Association> association) {
    const Association::Lock inner(*association);
    association->SetOnRequest([weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->Tell();
    });
    associations_.push_back(association);
  }
  static SocketAddress First(const std::vector<SocketAddress>& addresses) {
    return addresses.empty() ? SocketAddress() : addresses[0];
  }
  void Tell() {
    std::shared_ptr<transport::ReadyHandler> handler;
    {
      const std::lock_guard lock(mutex_);
      handler = handler_;
    }
    if (handler != nullptr) handler->OnReady({.read = true});
  }

  Wire& wire_;
  const SocketAddress local_;
  std::mutex mutex_;  // guards what follows; before the lock of an association
  std::unique_ptr<transport::sctp::Listener> listener_;
  std::shared_ptr<transport::ReadyHandler> handler_;
  std::vector<std::shared_ptr<Association>> associations_;
};

class Listener final : public llp::Listener {
 public:
  Listener(Wire& wire, std::unique_ptr<transport::sctp::Listener> listener, std::unique_ptr<LocatorService> service)
      : service_(std::move(service)),
        incoming_(std::make_shared<Incoming>(wire, std::move(listener), service_->LocalAddress())) {
    incoming_->Start();
  }
  ~Listener() override { incoming_->Close(); }

  void Watch(std::shared_ptr<transport::ReadyHandler> handler) override { incoming_->Watch(std::move(handler)); }
  Result<std::unique_ptr<llp::Responder>, int> Accept() override { return incoming_->Accept(); }
  SocketAddress LocalAddress() const override { return service_->LocalAddress(); }

 private:
  const std::unique_ptr<LocatorService> service_;
  const std::shared_ptr<Incoming> incoming_;
};

// How many ports are tried where any will do: one may be taken as SCTP's and not as UDP's.
constexpr int kPortAttempts = 16;

}  // namespace

Result<std::unique_ptr<llp::Initiator>, int> Wire::Connect(const SocketAddress& local, const SocketAddress& remote,
                                                           llp::Proposal ours) {
  if (ours.private_data.size() > ddp::sctp::SetUpData::Room(/*has_reads=*/true)) return EINVAL;
  return std::unique_ptr<llp::Initiator>(std::make_unique<Initiator>(*this, local, remote, std::move(ours)));
}

transport::sctp::Settings Wire::SettingsAt(const SocketAddress& local) const {
  transport::sctp::Settings sctp =
      transport::sctp::WithUserSettings({.adaptation = ddp::sctp::kAdaptationIndication}, settings_.sctp);
  sctp.local_addresses = transport::sctp::UserAddresses(settings_.sctp, local);
  return sctp;
}

Result<std::unique_ptr<llp::Listener>, int> Wire::Listen(const SocketAddress& local, int backlog, bool only_v6, bool) {
  const auto sctp = sctp_();
  if (!sctp.ok()) return sctp.error();
  for (int attempt = 1;; ++attempt) {
    auto service = OpenLocatorService(network_, local, only_v6);
    if (!service.ok()) return service.error();
    SocketAddress at = local;
    at.set_port((*service)->LocalAddress().port());
    auto listener = (*sctp)->Listen(at, backlog, SettingsAt(at));
    if (listener.ok()) {
      if (const uint16_t udp_port = (*sctp)->udp_port(); udp_port != 0) (*service)->Start(udp_port);
      return std::unique_ptr<llp::Listener>(std::make_unique<Listener>(*this, std::move(*listener), std::move(*service)));
    }
    if (listener.error() != EADDRINUSE || local.port() != 0 || attempt == kPortAttempts) return listener.error();
  }
}

Result<std::shared_ptr<LocatorSearch>, int> Wire::Locate(const SocketAddress& local, const SocketAddress& remote) {
  const std::lock_guard lock(mutex_);
  std::erase_if(searches_, [](const auto& entry) { return entry.second.expired(); });
  auto& known = searches_[{local.host(), remote.ToString()}];
  if (auto search = known.lock()) return search;
  auto search = LocatorSearch::Begin(network_, local, remote);
  if (search.ok()) known = *search;
  return search;
}

Result<std::shared_ptr<Association>, int> Wire::Reach(const SocketAddress& local, const SocketAddress& remote,
                                                      uint16_t udp_port) {
  const auto sctp = sctp_();
  if (!sctp.ok()) return sctp.error();
  const Ends ends{local.ToString(), remote.ToString()};
  const std::lock_guard lock(mutex_);
  std::erase_if(associations_, [](const auto& entry) { return entry.second.association.expired(); });
  // Another UDP port is another process: the peer was started anew.
  if (const auto known = associations_.find(ends); known != associations_.end() && known->second.udp_port == udp_port) {
    const auto association = known->second.association.lock();
    const auto held = association == nullptr ? std::unique_lock<std::mutex>() : association->Hold();
    if (association != nullptr && association->state() != Association::State::kOver && !association->is_full()) {
      return std::shared_ptr<Association>(association);
    }
  }
  auto made = (*sctp)->Connect({.addresses = {remote}, .udp_port = udp_port}, local.port(), SettingsAt(local));
  if (!made.ok()) return made.error();
  auto association = Association::Make(network_, pool_, std::move(*made), /*initiator=*/true);
  associations_[ends] = {association, udp_port};
  return association;
}

void Wire::Leave(const SocketAddress& listener, std::vector<std::shared_ptr<Association>> associations) {
  const std::lock_guard lock(mutex_);
  std::erase_if(left_, [](const Left& left) { return left.association.expired(); });
  for (auto& association : associations) left_.push_back({listener, association});
}

std::vector<std::shared_ptr<Association>> Wire::TakeLeft(const SocketAddress& listener) {
  const std::lock_guard lock(mutex_);
  std::vector<std::shared_ptr<Association>> taken;
  std::erase_if(left_, [&](const Left& left) {
    const auto alive = left.association.lock();
    if (alive == nullptr) return true;
    const bool ours = left.listener.port() == listener.port() &&
                      (listener.is_wildcard() || left.listener.is_wildcard() || left.listener.SameHost(listener));
    if (ours) taken.push_back(alive);
    return ours;
  });
  return taken;
}

size_t Wire::associations() {
  const std::lock_guard lock(mutex_);
  std::erase_if(associations_, [](const auto& entry) { return entry.second.association.expired(); });
  return associations_.size();
}

}  // namespace weft::sctp
