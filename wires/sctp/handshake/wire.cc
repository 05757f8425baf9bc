#include "wires/sctp/handshake/wire.h"

#include <cerrno>
#include <vector>

#include "base/log.h"
#include "ddp/sctp/chunk.h"
#include "ddp/sctp/set_up_data.h"
#include "transport/sctp/environment.h"
#include "wires/sctp/handshake/incoming.h"
#include "wires/sctp/handshake/initiator.h"
#include "wires/sctp/handshake/session_set_up.h"

namespace weft::sctp {
namespace {

using transport::SocketAddress;

const char* NameOf(transport::sctp::PathState state) {
  switch (state) {
    case transport::sctp::PathState::kActive:
      return "active";
    case transport::sctp::PathState::kInactive:
      return "inactive";
    case transport::sctp::PathState::kUnconfirmed:
      break;
  }
  return "unconfirmed";
}

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

Result<transport::sctp::Sctp*, int> Wire::Sctp() {
  auto sctp = sctp_();
  if (sctp.ok()) made_sctp_.store(*sctp, std::memory_order_release);
  return sctp;
}

std::vector<llp::PathState> Wire::Paths() {
  std::vector<llp::PathState> states;
  transport::sctp::Sctp* const sctp = made_sctp_.load(std::memory_order_acquire);
  if (sctp == nullptr) return states;
  uint32_t association = 0;
  for (const auto& paths : sctp->AllPaths()) {
    ++association;
    for (const transport::sctp::Path& path : paths) {
      states.push_back({.association = association,
                        .peer = path.address,
                        .state = NameOf(path.state),
                        .primary = path.primary,
                        .rtt_ms = static_cast<uint32_t>(path.smoothed_rtt.count()),
                        .congestion_window = path.congestion_window,
                        .mtu = path.mtu,
                        .packets_out = path.packets_out,
                        .bytes_out = path.bytes_out,
                        .packets_in = path.packets_in,
                        .bytes_in = path.bytes_in,
                        .failures = path.failures});
    }
  }
  return states;
}

int Wire::Explained(int error) const {
  if (error != EADDRNOTAVAIL || settings_.sctp.addresses.empty()) return error;
  std::string list;
  for (const std::string& address : settings_.sctp.addresses) list += (list.empty() ? "" : ",") + address;
  LogWarning(Format("WEFT_SCTP_ADDRESSES=%s: each must be an address of this host, and none link-local", list.c_str()));
  return error;
}

transport::sctp::Settings Wire::SettingsAt(const SocketAddress& local) const {
  transport::sctp::Settings sctp =
      transport::sctp::WithUserSettings({.adaptation = ddp::sctp::kAdaptationIndication}, settings_.sctp);
  sctp.local_addresses = transport::sctp::UserAddresses(settings_.sctp, local);
  return sctp;
}

Result<std::unique_ptr<llp::Listener>, int> Wire::Listen(const SocketAddress& local, int backlog, bool only_v6, bool) {
  const auto sctp = Sctp();
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
    if (listener.error() != EADDRINUSE || local.port() != 0 || attempt == kPortAttempts) return Explained(listener.error());
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
                                                      uint16_t udp_port, const Association* but) {
  const auto sctp = Sctp();
  if (!sctp.ok()) return sctp.error();
  const Ends ends{local.ToString(), remote.ToString()};
  const std::lock_guard lock(mutex_);
  std::erase_if(associations_, [](const auto& entry) { return entry.second.association.expired(); });
  // Another UDP port is another process: the peer was started anew.
  if (const auto known = associations_.find(ends); known != associations_.end() && known->second.udp_port == udp_port) {
    const auto association = known->second.association.lock();
    const auto held = association == nullptr ? std::unique_lock<std::mutex>() : association->Hold();
    if (association != nullptr && association.get() != but && association->state() != Association::State::kOver &&
        !association->is_full()) {
      return std::shared_ptr<Association>(association);
    }
  }
  auto made = (*sctp)->Connect({.addresses = {remote}, .udp_port = udp_port}, local.port(), SettingsAt(local));
  if (!made.ok()) return Explained(made.error());
  auto association = Association::Make(network_, pool_, std::move(*made), /*initiator=*/true);
  associations_[ends] = {association, udp_port};
  ++made_;
  return association;
}

uint64_t Wire::associations_made() {
  const std::lock_guard lock(mutex_);
  return made_;
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
