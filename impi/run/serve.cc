#include "impi/run/serve.h"

#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "impi/server/rendezvous.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/sockets.h"
#include "transport/socket_address.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kMostUnsent = 32 << 20;       // bytes, for a client that does not read: twice what all can say
constexpr milliseconds kPause{100};            // until the listener is looked at again when there was no descriptor
constexpr std::chrono::seconds kFlushLimit{5};  // for what was sent to a connection before it is closed

// The sockets of a Rendezvous. It hears of them in the order in which they became ready, which epoll keeps and poll(2) does not: the client whose connection ended
// first is the one that is named.
class Server final : public Rendezvous::Owner {
 public:
  Server(const ServerOptions& options, Descriptor listener, Descriptor signals)
      : listener_(std::move(listener)), signals_(std::move(signals)), rendezvous_({options.clients, options.authentication.methods, options.authentication.key}, *this) {}

  int Run();

  // Rendezvous::Owner
  void Send(Rendezvous::Connection connection, const Bytes& bytes) override;
  void Close(Rendezvous::Connection connection) override;
  void Warn(const std::string& text) override { std::fprintf(stderr, "impirun: warning: %s\n", text.c_str()); }

 private:
  struct Socket {
    Descriptor fd;
    pmi::Outbox out;
    bool broken = false;  // and in `broken_`
    std::optional<Clock::time_point> closes_by;  // when what is unsent is given up; set: the rendezvous knows it no more
  };

  bool over() const { return rendezvous_.state() == Rendezvous::State::kEnded || rendezvous_.state() == Rendezvous::State::kFailed; }
  void Accept();
  void Read(Rendezvous::Connection connection, Socket& socket);
  void Break(Rendezvous::Connection connection, Socket& socket);
  void OnEvents(Rendezvous::Connection connection, uint32_t events);
  void WatchAll();
  void DropBroken();
  milliseconds Patience(bool starved) const;

  pmi::EventPoller poller_;
  Descriptor listener_, signals_;
  Rendezvous rendezvous_;
  std::map<Rendezvous::Connection, Socket> sockets_;
  std::vector<Rendezvous::Connection> broken_;  // in this order
  Rendezvous::Connection next_ = 0;
  bool starved_ = false;  // there was no descriptor for a connection that waits
};

void Server::Send(Rendezvous::Connection connection, const Bytes& bytes) {
  Socket& socket = sockets_.at(connection);
  socket.out.Add({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
  if (socket.out.WriteTo(socket.fd.get()) != 0 || socket.out.size() > kMostUnsent) Break(connection, socket);
}

void Server::Close(Rendezvous::Connection connection) { sockets_.at(connection).closes_by = Clock::now() + kFlushLimit; }

void Server::Break(Rendezvous::Connection connection, Socket& socket) {
  if (!std::exchange(socket.broken, true)) broken_.push_back(connection);
}

void Server::Accept() {
  const int fd = AcceptOnListener(listener_.get());
  starved_ = fd < 0 && IsShortage(errno);
  if (fd < 0) return;
  pmi::ConfigureTcp(fd);
  const Rendezvous::Connection connection = next_++;
  sockets_[connection].fd = Descriptor(fd);
  if (!poller_.Watch(fd, EPOLLIN, [this, connection](uint32_t events) { OnEvents(connection, events); })) {
    Warn("a connection is refused, because it cannot be watched: " + DescribeShortage(errno));
    sockets_.erase(connection);
    return;
  }
  const auto peer = transport::SocketAddress::Peer(fd);
  rendezvous_.OnConnected(connection, pmi::PlainHost(peer) + ":" + std::to_string(peer.port()), Clock::now());
}

void Server::Read(Rendezvous::Connection connection, Socket& socket) {
  char block[65536];
  const long count = pmi::ReadSome(socket.fd.get(), block, sizeof block);
  if (count == -EAGAIN) return;
  if (count <= 0) return Break(connection, socket);
  rendezvous_.OnBytes(connection, {reinterpret_cast<const uint8_t*>(block), static_cast<size_t>(count)}, Clock::now());
}

void Server::OnEvents(Rendezvous::Connection connection, uint32_t events) {
  Socket& socket = sockets_.at(connection);
  if ((events & EPOLLOUT) != 0 && socket.out.WriteTo(socket.fd.get()) != 0) Break(connection, socket);
  if (socket.closes_by) {
    if ((events & (EPOLLHUP | EPOLLERR)) != 0) Break(connection, socket);
  } else if (!socket.broken && (events & ~static_cast<uint32_t>(EPOLLOUT)) != 0) {
    Read(connection, socket);
  }
}

// Of each what it waits for now.
void Server::WatchAll() {
  // A listener that is watched and not accepted from would end each wait at once.
  poller_.Change(listener_.get(), starved_ || over() ? 0u : EPOLLIN);
  for (auto& [connection, socket] : sockets_) {
    poller_.Change(socket.fd.get(), (socket.closes_by ? 0u : EPOLLIN) | (socket.out.empty() ? 0u : EPOLLOUT));
  }
}

// What is over is closed; what the rendezvous does not know yet, it hears. That may break and close others.
void Server::DropBroken() {
  const Clock::time_point now = Clock::now();
  for (;;) {
    for (auto& [connection, socket] : sockets_) {
      if (socket.closes_by && (socket.out.empty() || *socket.closes_by <= now)) Break(connection, socket);
    }
    if (broken_.empty()) return;
    for (size_t i = 0; i < broken_.size(); ++i) {
      const auto at = sockets_.find(broken_[i]);
      const bool closing = at->second.closes_by.has_value();
      poller_.Forget(at->second.fd.get());
      sockets_.erase(at);
      if (!closing) rendezvous_.OnClosed(broken_[i]);
    }
    broken_.clear();
  }
}

milliseconds Server::Patience(bool starved) const {
  std::optional<Clock::time_point> first = rendezvous_.deadline();
  for (const auto& [connection, socket] : sockets_) {
    if (socket.closes_by && (!first || *socket.closes_by < *first)) first = socket.closes_by;
  }
  milliseconds patience = starved ? kPause : milliseconds(-1);
  if (!first) return patience;
  const auto left = std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*first - Clock::now()));
  return patience.count() < 0 ? left : std::min(patience, left);
}

int Server::Run() {
  bool stopped = false;
  if (!poller_.Watch(signals_.get(), EPOLLIN, [&](uint32_t) { stopped = true; }) || !poller_.Watch(listener_.get(), EPOLLIN, [this](uint32_t) { Accept(); })) {
    std::fprintf(stderr, "impirun: clients cannot be waited for: %s\n", DescribeShortage(errno).c_str());
    return 1;
  }
  while (!stopped && !(over() && sockets_.empty())) {
    WatchAll();
    const bool starved = std::exchange(starved_, false);
    poller_.Wait(static_cast<int>(Patience(starved).count()));
    rendezvous_.OnTime(Clock::now());
    DropBroken();
  }
  if (rendezvous_.state() == Rendezvous::State::kEnded) return 0;
  if (stopped) std::fprintf(stderr, "impirun: a signal ends the server, and with it the job\n");
  if (!rendezvous_.reason().empty()) std::fprintf(stderr, "impirun: %s\n", rendezvous_.reason().c_str());
  return 1;
}

Descriptor Signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGQUIT}) sigaddset(&taken, number);
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  signal(SIGPIPE, SIG_IGN);
  return Descriptor(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
}

}  // namespace

int ServeJob(const ServerOptions& options) {
  RaiseFileLimit();
  Descriptor signals = Signals();
  int port = 0;
  const pmi::PortRange range = options.port == 0 ? pmi::PortRange{} : pmi::PortRange{options.port, options.port};
  Descriptor listener(pmi::Listen(&port, range));
  if (!listener || !signals) {
    const std::string where = options.port == 0 ? "" : " at port " + std::to_string(options.port);
    std::fprintf(stderr, "impirun: cannot listen for clients%s: %s\n", where.c_str(), std::strerror(errno));
    return 1;
  }
  // Section 2.2.1: an address in standard dot notation.
  const auto addresses = pmi::AddressesFor({}, {});
  const auto ipv4 = std::find_if(addresses.begin(), addresses.end(), [](const std::string& address) { return address.find(':') == std::string::npos; });
  std::printf("%s:%d\n", ipv4 == addresses.end() ? "127.0.0.1" : ipv4->c_str(), port);
  std::fflush(stdout);
  return Server(options, std::move(listener), std::move(signals)).Run();
}

}  // namespace weft::impi
