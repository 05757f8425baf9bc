#include "sim/net/virtual_network.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "sim/net/virtual_datagrams.h"
#include "sim/net/virtual_endpoints.h"

namespace weft::sim {

using transport::ByteStream;
using transport::Listener;
using transport::ReadyHandler;
using transport::TimerId;
using transport::WatchId;

namespace {

// What calling a handler costs in virtual time: a handler that is ready for ever does not stop the clock.
constexpr Duration kDispatchCost = std::chrono::nanoseconds(200);
// Linux sends SYN again after 1, 2, 4 ... seconds, six times.
constexpr int kMostSynAttempts = 7;
constexpr Duration kUnreachableAfter = std::chrono::seconds(3);

// The address without port, as SetLink is given it.
std::string HostText(SocketAddress address) {
  address.set_port(0);
  return address.ToString();
}

SocketAddress MustParse(const std::string& host) {
  auto address = SocketAddress::Parse(host, 0);
  WEFT_CHECK(address.has_value());
  return *address;
}

}  // namespace

// A host as its programs see the network.
class VirtualNetwork::Host : public transport::Network {
 public:
  Host(VirtualNetwork& network, std::vector<SocketAddress> addresses)
      : network_(network), addresses_(std::move(addresses)) {}

  bool Has(const SocketAddress& address) const {
    return std::any_of(addresses_.begin(), addresses_.end(), [&](const auto& own) { return own.SameHost(address); });
  }
  // Where a connection to `remote` comes from when the program does not say.
  std::optional<SocketAddress> SourceFor(const SocketAddress& remote) const {
    if (remote.is_loopback() || Has(remote)) return remote;
    for (const SocketAddress& own : addresses_) {
      if (own.family() == remote.family()) return own;
    }
    return std::nullopt;
  }

  Result<std::unique_ptr<ByteStream>, int> StartConnect(const SocketAddress& local,
                                                        const SocketAddress& remote) override {
    return network_.Connect(*this, local, remote);
  }
  Result<std::unique_ptr<Listener>, int> Listen(const SocketAddress& local, int backlog, bool only_v6, bool) override {
    return network_.ListenOn(*this, local, backlog, only_v6);
  }
  WatchId Watch(ByteStream& stream, Interest interest, std::shared_ptr<ReadyHandler> handler) override {
    return network_.Watch(stream, interest, std::move(handler));
  }
  WatchId Watch(Listener& listener, std::shared_ptr<ReadyHandler> handler) override {
    return network_.Watch(listener, std::move(handler));
  }
  Result<std::unique_ptr<transport::DatagramSocket>, int> OpenDatagram(const SocketAddress& local,
                                                                       const transport::DatagramOptions& options) override {
    return network_.OpenDatagramOn(*this, local, options);
  }
  WatchId Watch(transport::DatagramSocket& socket, Interest interest, std::shared_ptr<ReadyHandler> handler) override {
    return network_.Watch(socket, interest, std::move(handler));
  }
  void SetInterest(WatchId id, Interest interest) override { network_.SetInterest(id, interest); }
  void Unwatch(WatchId id) override { network_.Unwatch(id); }
  Time Now() override { return network_.Now(); }
  TimerId RunAt(Time when, std::function<void()> work) override { return network_.RunAt(when, std::move(work)); }
  bool Cancel(TimerId id) override { return network_.Cancel(id); }
  void Post(std::function<void()> work) override { network_.Post(std::move(work)); }

 private:
  VirtualNetwork& network_;
  const std::vector<SocketAddress> addresses_;
};

VirtualNetwork::VirtualNetwork(uint64_t seed)
    : seed_(seed),
      random_(seed),
      environment_{.clock = clock_,
                   .changed = [this](VirtualConnection& connection,
                                     VirtualConnection::End end) { Changed(VirtualStream::SourceOf(connection, end)); },
                   .trace = nullptr},
      everywhere_(std::make_unique<Host>(*this, std::vector<SocketAddress>())) {
  SetDefaultLink(LinkFaults());
}

VirtualNetwork::~VirtualNetwork() {
  // Handlers and work may own streams, and those call back when they are destroyed.
  while (!watches_.empty()) Unwatch(watches_.begin()->first);
  clock_.DropAll();
  WEFT_CHECK(listeners_.empty());
  WEFT_CHECK(datagram_sockets_.empty());
}

transport::Network& VirtualNetwork::AddHost(const std::vector<std::string>& addresses) {
  std::vector<SocketAddress> parsed;
  for (const std::string& address : addresses) parsed.push_back(MustParse(address));
  hosts_.push_back(std::make_unique<Host>(*this, std::move(parsed)));
  return *hosts_.back();
}

void VirtualNetwork::SetLink(const std::string& from, const std::string& to, const LinkFaults& faults) {
  links_[{HostText(MustParse(from)), HostText(MustParse(to))}] = faults;
}

void VirtualNetwork::SetDefaultLink(const LinkFaults& faults) {
  default_link_ = [faults](const SocketAddress&, const SocketAddress&) { return faults; };
}

void VirtualNetwork::SetDefaultLink(std::function<LinkFaults(const SocketAddress&, const SocketAddress&)> choose) {
  default_link_ = std::move(choose);
}

LinkFaults VirtualNetwork::LinkBetween(const SocketAddress& from, const SocketAddress& to) {
  auto named = links_.find({HostText(from), HostText(to)});
  return named != links_.end() ? named->second : default_link_(from, to);
}

void VirtualNetwork::BreakAll(LinkFaults::Cut how) {
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  for (auto& weak : std::vector(connections_)) {
    if (auto connection = weak.lock()) connection->Break(how);
  }
}

VirtualNetwork::Host* VirtualNetwork::HostOf(const SocketAddress& address, Host* from) {
  if (address.is_loopback() || from->Has(address)) return from;
  for (auto& host : hosts_) {
    if (host->Has(address)) return host.get();
  }
  // The network itself answers for every address that no host has, but not across from a host that cannot know it.
  return from == everywhere_.get() || hosts_.empty() ? everywhere_.get() : nullptr;
}

VirtualListener* VirtualNetwork::FindListener(Host* host, const SocketAddress& address) {
  VirtualListener* found = nullptr;
  for (VirtualListener* listener : listeners_) {
    if (!listener->Takes(host, address)) continue;
    if (found == nullptr || !listener->LocalAddress().is_wildcard()) found = listener;  // the more specific
  }
  return found;
}

uint16_t VirtualNetwork::EphemeralPort() {
  if (++last_port_ < 32768) last_port_ = 32768;
  return last_port_;
}

Result<std::unique_ptr<ByteStream>, int> VirtualNetwork::StartConnect(const SocketAddress& local,
                                                                      const SocketAddress& remote) {
  return Connect(*everywhere_, local, remote);
}

Result<std::unique_ptr<ByteStream>, int> VirtualNetwork::Connect(Host& from, SocketAddress local,
                                                                 const SocketAddress& remote) {
  if (remote.family() == AF_UNSPEC) return EAFNOSUPPORT;
  if (local.family() == AF_UNSPEC || local.is_wildcard()) {
    uint16_t port = local.port();
    auto source = &from == everywhere_.get() ? remote : from.SourceFor(remote);
    if (!source) return ENETUNREACH;
    local = *source;
    local.set_port(port);
  } else if (&from != everywhere_.get() && !local.is_loopback() && !from.Has(local)) {
    return EADDRNOTAVAIL;
  }
  if (local.port() == 0) local.set_port(EphemeralPort());

  LinkFaults forward = LinkBetween(local, remote);
  auto connection =
      std::make_shared<VirtualConnection>(environment_, random_.Next(), local, remote, forward, LinkBetween(remote, local));
  std::erase_if(connections_, [](const auto& weak) { return weak.expired(); });
  connections_.push_back(connection);
  if (environment_.trace) Trace(local.ToString() + " > " + remote.ToString() + " SYN");
  switch (forward.connect) {
    case LinkFaults::Connect::kWorks:
      clock_.After(forward.delay, [this, connection, &from] { SynArrives(connection, from, 1); });
      break;
    case LinkFaults::Connect::kRefused:
      connection->FailConnect(ECONNREFUSED, 2 * forward.delay);
      break;
    case LinkFaults::Connect::kTimesOut:
      connection->FailConnect(ETIMEDOUT, forward.connect_timeout);
      break;
  }
  return std::unique_ptr<ByteStream>(std::make_unique<VirtualStream>(connection, VirtualConnection::kInitiator));
}

void VirtualNetwork::SynArrives(std::shared_ptr<VirtualConnection> connection, Host& from, int attempt) {
  if (connection->ConnectError(VirtualConnection::kInitiator) != EINPROGRESS) return;
  const SocketAddress& remote = connection->AddressOf(VirtualConnection::kAcceptor);
  Host* host = HostOf(remote, &from);
  if (host == nullptr) return connection->FailConnect(EHOSTUNREACH, kUnreachableAfter);
  VirtualListener* listener = FindListener(host, remote);
  if (listener == nullptr) return connection->FailConnect(ECONNREFUSED, connection->BackDelay());
  if (listener->Offer(connection)) {
    connection->Establish();
    Changed(listener);
  } else if (attempt == kMostSynAttempts) {
    connection->FailConnect(ETIMEDOUT, std::chrono::seconds(1));
  } else {
    clock_.After(std::chrono::seconds(1 << (attempt - 1)),
                 [this, connection, &from, attempt] { SynArrives(connection, from, attempt + 1); });
  }
}

Result<std::unique_ptr<Listener>, int> VirtualNetwork::Listen(const SocketAddress& local, int backlog, bool only_v6,
                                                              bool) {
  return ListenOn(*everywhere_, local, backlog, only_v6);
}

Result<std::unique_ptr<Listener>, int> VirtualNetwork::ListenOn(Host& host, SocketAddress local, int backlog,
                                                                bool only_v6) {
  if (local.family() == AF_UNSPEC) return EAFNOSUPPORT;
  bool own = &host == everywhere_.get() || local.is_wildcard() || local.is_loopback() || host.Has(local);
  if (!own) return EADDRNOTAVAIL;
  if (local.port() == 0) local.set_port(EphemeralPort());
  for (VirtualListener* other : listeners_) {
    if (other->CollidesWith(&host, local, only_v6)) return EADDRINUSE;
  }
  auto listener = std::make_unique<VirtualListener>(&host, local, backlog, only_v6,
                                                    [this](VirtualListener* gone) { std::erase(listeners_, gone); });
  listeners_.push_back(listener.get());
  return std::unique_ptr<Listener>(std::move(listener));
}

Result<std::unique_ptr<transport::DatagramSocket>, int> VirtualNetwork::OpenDatagram(
    const SocketAddress& local, const transport::DatagramOptions& options) {
  return OpenDatagramOn(*everywhere_, local, options);
}

Result<std::unique_ptr<transport::DatagramSocket>, int> VirtualNetwork::OpenDatagramOn(
    Host& host, SocketAddress local, const transport::DatagramOptions& options) {
  if (local.family() == AF_UNSPEC) return EAFNOSUPPORT;
  if (options.group.family() != 0) return EOPNOTSUPP;
  if (&host != everywhere_.get() && !local.is_wildcard() && !local.is_loopback() && !host.Has(local)) return EADDRNOTAVAIL;
  if (local.port() == 0) local.set_port(EphemeralPort());
  for (const VirtualDatagramSocket* other : datagram_sockets_) {
    const SocketAddress taken = other->LocalAddress();
    const bool same = other->host() == &host && taken.port() == local.port();
    if (same && !options.shared && (taken.is_wildcard() || local.is_wildcard() || taken.SameHost(local))) return EADDRINUSE;
  }
  auto socket = std::make_unique<VirtualDatagramSocket>(
      &host, local, options,
      [this, &host](VirtualDatagramSocket& sender, VirtualDatagram datagram) { DatagramLeaves(host, sender, std::move(datagram)); },
      [this](VirtualDatagramSocket* gone) { std::erase(datagram_sockets_, gone); });
  datagram_sockets_.push_back(socket.get());
  return std::unique_ptr<transport::DatagramSocket>(std::move(socket));
}

void VirtualNetwork::DatagramLeaves(Host& host, VirtualDatagramSocket& socket, VirtualDatagram datagram) {
  if (datagram.from.is_wildcard()) {
    const uint16_t port = datagram.from.port();
    auto source = &host == everywhere_.get() ? datagram.to : host.SourceFor(datagram.to);
    if (!source) return;
    datagram.from = *source;
    datagram.from.set_port(port);
  }
  if (datagram_change_) datagram_change_(datagram.bytes);
  const LinkFaults link = LinkBetween(datagram.from, datagram.to);
  if (random_.Chance(link.lose_datagram)) return;
  const int copies = random_.Chance(link.repeat_datagram) ? 2 : 1;
  for (int i = 0; i < copies; ++i) {
    const Duration delay = link.delay + Duration(random_.Between(0, static_cast<uint64_t>(link.jitter.count())));
    clock_.After(delay, [this, &host, sender = &socket, datagram] { DatagramArrives(host, sender, datagram); });
  }
}

void VirtualNetwork::DatagramArrives(Host& from, VirtualDatagramSocket* sender, VirtualDatagram datagram) {
  Host* host = HostOf(datagram.to, &from);
  if (host == nullptr) return;
  for (VirtualDatagramSocket* socket : datagram_sockets_) {
    if (!socket->Takes(host, datagram.from, datagram.to)) continue;
    socket->Arrives(std::move(datagram));
    return Changed(socket);
  }
  const bool alive = std::find(datagram_sockets_.begin(), datagram_sockets_.end(), sender) != datagram_sockets_.end();
  if (alive && sender->Refused()) Changed(sender);
}

WatchId VirtualNetwork::Watch(transport::DatagramSocket& socket, Interest interest, std::shared_ptr<ReadyHandler> handler) {
  auto* ours = dynamic_cast<VirtualDatagramSocket*>(&socket);
  WEFT_CHECK(ours != nullptr);
  return AddWatch(ours, interest, std::move(handler), [ours] { return ours->Ready(); });
}

WatchId VirtualNetwork::Watch(ByteStream& stream, Interest interest, std::shared_ptr<ReadyHandler> handler) {
  auto* ours = dynamic_cast<VirtualStream*>(&stream.Innermost());
  WEFT_CHECK(ours != nullptr);
  return AddWatch(ours->source(), interest, std::move(handler), [ours] { return ours->Ready(); });
}

WatchId VirtualNetwork::Watch(Listener& listener, std::shared_ptr<ReadyHandler> handler) {
  auto* ours = dynamic_cast<VirtualListener*>(&listener);
  WEFT_CHECK(ours != nullptr);
  return AddWatch(ours, {.read = true}, std::move(handler), [ours] { return Interest{.read = ours->has_waiting()}; });
}

WatchId VirtualNetwork::AddWatch(const void* source, Interest interest, std::shared_ptr<ReadyHandler> handler,
                                 std::function<Interest()> ready) {
  WatchId id = ++last_watch_;
  WEFT_CHECK(watch_of_.emplace(source, id).second);  // one watch per stream or listener
  auto& entry =
      watches_[id] = {.interest = interest, .handler = std::move(handler), .ready = std::move(ready), .source = source};
  Enqueue(id, entry);
  return id;
}

void VirtualNetwork::SetInterest(WatchId id, Interest interest) {
  auto watch = watches_.find(id);
  if (watch == watches_.end()) return;
  watch->second.interest = interest;
  Enqueue(id, watch->second);
}

void VirtualNetwork::Unwatch(WatchId id) {
  auto watch = watches_.find(id);
  if (watch == watches_.end()) return;
  watch_of_.erase(watch->second.source);
  auto handler = std::move(watch->second.handler);  // may call back when destroyed
  watches_.erase(watch);
}

void VirtualNetwork::Changed(const void* source) {
  auto id = watch_of_.find(source);
  if (id != watch_of_.end()) Enqueue(id->second, watches_.at(id->second));
}

void VirtualNetwork::Enqueue(WatchId id, WatchEntry& entry) {
  if (entry.queued || entry.interest == Interest{}) return;
  entry.queued = true;
  maybe_ready_.push_back(id);
}

TimerId VirtualNetwork::RunAt(Time when, std::function<void()> work) { return clock_.At(when, std::move(work)); }

bool VirtualNetwork::Cancel(TimerId id) { return clock_.Cancel(id); }

void VirtualNetwork::Post(std::function<void()> work) { clock_.At(clock_.Now(), std::move(work)); }

// Calls the handler of one watch that is ready, chosen at random; false when none is.
bool VirtualNetwork::DispatchOne() {
  while (!maybe_ready_.empty()) {
    size_t at = random_.Between(0, maybe_ready_.size() - 1);
    WatchId id = maybe_ready_[at];
    maybe_ready_[at] = maybe_ready_.back();
    maybe_ready_.pop_back();
    auto watch = watches_.find(id);
    if (watch == watches_.end()) continue;
    watch->second.queued = false;
    Interest ready = watch->second.ready();
    ready.read = ready.read && watch->second.interest.read;
    ready.write = ready.write && watch->second.interest.write;
    if (ready == Interest{}) continue;
    auto handler = watch->second.handler;
    handler->OnReady(ready);
    clock_.AdvanceTo(clock_.Now() + kDispatchCost);
    watch = watches_.find(id);
    if (watch != watches_.end()) Enqueue(id, watch->second);  // level-triggered: it may be ready still
    return true;
  }
  return false;
}

bool VirtualNetwork::Step() {
  WEFT_CHECK(!stepping_);  // not from a handler
  stepping_ = true;
  // Both orders occur between readiness and work that is due at the same time.
  bool work_first = random_.Chance(0.5);
  bool did = (work_first && clock_.RunOneDue()) || DispatchOne() || clock_.RunOneDue();
  if (!did && clock_.NextDue() != Time::max()) {
    clock_.AdvanceTo(clock_.NextDue());
    did = clock_.RunOneDue();
  }
  stepping_ = false;
  return did;
}

bool VirtualNetwork::RunUntilIdle(size_t most_steps) {
  for (size_t steps = 0; Step(); ++steps) {
    if (steps == most_steps) return false;
  }
  return true;
}

void VirtualNetwork::RunUntil(Time when) {
  // Step lets time pass only up to the next work; a marker keeps it from passing beyond `when`.
  bool reached = false;
  clock_.At(when, [&] { reached = true; });
  while (!reached) Step();
}

bool VirtualNetwork::RunUntil(const std::function<bool()>& done, Duration most) {
  bool over = false;
  Time last = Now() + most;
  TimerId limit = clock_.At(last, [&] { over = true; });
  bool reached;
  while (!(reached = done()) && !over) {
    // The limit itself does not count as something left to happen.
    if (maybe_ready_.empty() && clock_.NextDue() == last) break;
    Step();
  }
  clock_.Cancel(limit);
  return reached;
}

void VirtualNetwork::EnableTrace() {
  environment_.trace = [this](const std::string& line) { Trace(line); };
}

void VirtualNetwork::Trace(const std::string& line) {
  double micros = std::chrono::duration<double, std::micro>(clock_.Now().time_since_epoch()).count();
  trace_ += Format("%.3f us ", micros) + line + "\n";
}

}  // namespace weft::sim
