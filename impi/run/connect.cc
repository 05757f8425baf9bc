#include "impi/run/connect.h"

#include <arpa/inet.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "base/high_descriptor.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/poller.h"
#include "pmi/launch/sockets.h"
#include "transport/socket_address.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using transport::SocketAddress;

constexpr milliseconds kPause{100};  // until the listener is looked at again when there was no descriptor

HostId HostIdOf(const SocketAddress& address) {
  const std::string text = pmi::PlainHost(address);
  HostId host{};
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return HostIdOfIpv4(ipv4.s_addr);
  inet_pton(AF_INET6, text.c_str(), host.data());
  return host;
}

class Connector {
 public:
  Connector(const Job& job, const Dance::Setup& setup, const Descriptor& listener, const std::function<void(const std::string&)>& warn,
            const Interruption& interruption)
      : job_(job), setup_(setup), listener_(listener), warn_(warn), interruption_(interruption), dance_(job, setup, Clock::now()) {}

  Result<std::map<HostRank, Descriptor>, std::string> Run() {
    while (!interrupted_ && (dance_.step() == Dance::Step::kConnect || dance_.step() == Dance::Step::kAccept)) {
      if (dance_.step() == Dance::Step::kConnect) {
        ConnectToPeer();
      } else {
        Accept();
      }
      for (const Dance::Refusal& refusal : dance_.TakeRefused()) {
        warn_(refusal.why);
        sockets_.erase(refusal.connection);
      }
    }
    if (interrupted_) return *interrupted_;
    if (dance_.step() == Dance::Step::kFailed) return dance_.reason();
    std::map<HostRank, Descriptor> connected;
    for (const auto& [host, connection] : dance_.connections()) connected.emplace(host, std::move(sockets_.at(connection)));
    return connected;
  }

 private:
  milliseconds Patience() const {
    const auto deadline = dance_.deadline();
    return deadline ? std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*deadline - Clock::now())) : milliseconds(0);
  }

  void ConnectToPeer() {
    const Job::Host& peer = job_.host(dance_.peer());
    const auto to = SocketAddress::Parse(TextOf(peer.address), peer.port), from = SocketAddress::Parse(TextOf(job_.host(setup_.host).address), 0);
    if (!to || !from) return dance_.OnConnectFailed("the address cannot be used here");
    Descriptor fd(LeaveRoomForSelect(socket(to->family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!fd) return dance_.OnConnectFailed(std::strerror(errno));
    if (bind(fd.get(), from->get(), from->length()) != 0) {
      return dance_.OnConnectFailed("the address " + from->host() + ", which this host announced, cannot be its own: " + std::strerror(errno));
    }
    int error = connect(fd.get(), to->get(), to->length()) == 0 ? 0 : errno;
    if (error == EINPROGRESS) {
      if (!AwaitConnection(fd.get())) return dance_.OnTime(Clock::now());
      socklen_t length = sizeof error;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &length);
    }
    if (error != 0) return dance_.OnConnectFailed(std::strerror(error));
    pmi::ConfigureTcp(fd.get());
    const auto greeting = dance_.OnConnected(next_);
    // Into the empty buffer of a new connection.
    if (send(fd.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(greeting.size())) dance_.OnClosed(next_);
    sockets_.emplace(next_++, std::move(fd));
  }

  // Whether it is there, or has failed, before the time is over.
  bool AwaitConnection(int fd) {
    bool is_ready = false;
    while (!is_ready && !interrupted_ && Patience() > milliseconds(0)) {
      pmi::Poller poller;
      poller.Watch(fd, POLLOUT, [&](short) { is_ready = true; });
      WatchInterruption(poller);
      poller.Wait(static_cast<int>(Patience().count()));
    }
    return is_ready;
  }

  void WatchInterruption(pmi::Poller& poller) {
    poller.Watch(interruption_.fd, POLLIN, [this](short) { interrupted_ = interruption_.look(); });
  }

  void Accept() {
    pmi::Poller poller;
    WatchInterruption(poller);
    milliseconds patience = Patience();
    if (std::exchange(starved_, false)) {
      patience = std::min(patience, kPause);
    } else {
      poller.Watch(listener_.get(), POLLIN, [this](short) { AcceptOne(); });
    }
    for (const auto& [connection, fd] : sockets_) {
      if (dance_.Wants(connection) == 0) continue;
      poller.Watch(fd.get(), POLLIN, [this, number = connection, socket = fd.get()](short) { Read(number, socket); });
    }
    poller.Wait(static_cast<int>(patience.count()));
    dance_.OnTime(Clock::now());
  }

  void AcceptOne() {
    Descriptor fd(AcceptOnListener(listener_.get()));
    starved_ = !fd && (errno == EMFILE || errno == ENFILE);
    if (!fd) return;
    pmi::ConfigureTcp(fd.get());
    const HostId address = HostIdOf(SocketAddress::Peer(fd.get()));
    sockets_.emplace(next_, std::move(fd));
    dance_.OnAccepted(next_++, address, Clock::now());
  }

  void Read(Dance::Connection connection, int fd) {
    char word[Dance::kGreeting];
    const size_t wanted = dance_.Wants(connection);
    if (wanted == 0) return;
    const long count = pmi::ReadSome(fd, word, wanted);
    if (count == -EAGAIN) return;
    if (count <= 0) return dance_.OnClosed(connection);
    dance_.OnBytes(connection, {reinterpret_cast<const uint8_t*>(word), static_cast<size_t>(count)});
  }

  const Job& job_;
  const Dance::Setup setup_;
  const Descriptor& listener_;
  const std::function<void(const std::string&)>& warn_;
  const Interruption& interruption_;
  std::optional<std::string> interrupted_;  // why
  Dance dance_;
  std::map<Dance::Connection, Descriptor> sockets_;
  Dance::Connection next_ = 0;
  bool starved_ = false;  // there was no descriptor for a connection that waits
};

}  // namespace

Result<std::map<HostRank, Descriptor>, std::string> ConnectHosts(const Job& job, const Dance::Setup& setup, const Descriptor& listener,
                                                                 const std::function<void(const std::string&)>& warn, const Interruption& interruption) {
  return Connector(job, setup, listener, warn, interruption).Run();
}

}  // namespace weft::impi
