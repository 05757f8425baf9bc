#include "mpi_hybrid/p2p/device.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "transport/send_buffer.h"

namespace weft::mpi {
namespace {

constexpr char kKey[] = "weft-p2p";
constexpr size_t kStaging = 64 * 1024;
constexpr size_t kPieces = 64;          // of one gathering write or scattering read
constexpr int kReadsPerTurn = 16;       // of one connection before others have theirs
constexpr size_t kDirectConnections = 4;  // up to so many are read without asking epoll first
constexpr unsigned kEpollEvery = 32;    // rounds of reading directly, for listener and greetings
constexpr uint64_t kLongBody = 128 * 1024, kMostLowWater = 512 * 1024;
constexpr size_t kMostStrangers = 1024;
constexpr auto kStrangerPatience = std::chrono::seconds(10);

// "host:port", "[v6]:port".
std::optional<transport::SocketAddress> ParseAddress(const std::string& text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  const int port = std::atoi(text.c_str() + colon + 1);
  if (port <= 0 || port > 65535) return std::nullopt;
  return transport::SocketAddress::Parse(host, static_cast<uint16_t>(port));
}

}  // namespace

Device::~Device() = default;

Error Device::Start() {
  const auto secret = JobSecret::FromHex(job_.secret.c_str());
  if (!secret && job_.size > 1) return Error(MPI_ERR_INTERN, "the job's secret is not 32 hexadecimal digits");
  if (secret) secret_ = *secret;
  epoll_ = Socket(epoll_create1(EPOLL_CLOEXEC));
  wake_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!epoll_ || !wake_) return Error(MPI_ERR_OTHER, std::string("cannot create a descriptor for events: ") + std::strerror(errno));
  Add(wake_.fd(), EPOLLIN);
  staging_.resize(kStaging);
  if (job_.size == 1) return {};
  const auto address = transport::SocketAddress::Parse(job_.host, 0);
  if (!address) return Error(MPI_ERR_OTHER, "the address of this host, '" + job_.host + "', is not a numeric one (WEFT_MPI_HOST)");
  listener_ = Socket::Listen(*address);
  if (!listener_) return Error(MPI_ERR_OTHER, "cannot listen on " + job_.host + " (WEFT_MPI_HOST): " + std::strerror(errno));
  Add(listener_.fd(), EPOLLIN);
  return job_.Publish(kKey, listener_.LocalAddress().ToString());
}

// --- epoll ---

void Device::Add(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  WEFT_CHECK(epoll_ctl(epoll_.fd(), EPOLL_CTL_ADD, fd, &event) == 0);
}

void Device::Modify(int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  WEFT_CHECK(epoll_ctl(epoll_.fd(), EPOLL_CTL_MOD, fd, &event) == 0);
}

void Device::Watch(int fd) { Add(fd, EPOLLIN); }

void Device::Unwatch(int fd) { epoll_ctl(epoll_.fd(), EPOLL_CTL_DEL, fd, nullptr); }

void Device::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.fd(), &one, sizeof(one));
}

bool Device::Sleep(int timeout_ms) {
  epoll_event events[64];
  RaiseLowWater();
  LibraryLock::Release();
  const int count = epoll_wait(epoll_.fd(), events, std::size(events), timeout_ms);
  LibraryLock::Acquire();
  for (int i = 0; i < count; ++i) OnReady(events[i].data.fd, events[i].events);
  Flush();
  return count != 0;
}

bool Device::DispatchReady(int timeout_ms) {
  epoll_event events[64];
  const int count = epoll_wait(epoll_.fd(), events, std::size(events), timeout_ms);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == wake_.fd()) continue;  // for the thread that sleeps, which would sleep on if it were read here
    OnReady(events[i].data.fd, events[i].events);
    any = true;
  }
  return any;
}

// Events may be stale: another thread or an earlier event closed the descriptor, or gave it a new meaning. Each handler copes with not
// being ready.
void Device::OnReady(int fd, uint32_t events) {
  const size_t at = static_cast<size_t>(fd);
  if (fd == listener_.fd()) {
    OnListener();
  } else if (fd == wake_.fd()) {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof(count));
  } else if (at < connections_.size() && connections_[at] != nullptr) {
    Connection& connection = *connections_[at];
    switch (connection.state) {
      case Connection::State::kConnecting:
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) OnConnecting(connection);
        break;
      case Connection::State::kGreeting:
        OnGreeting(connection);
        break;
      case Connection::State::kOpen:
        if (events & EPOLLOUT) Write(connection);
        // Write may have closed it.
        if (connections_[at] != nullptr && (events & ~static_cast<uint32_t>(EPOLLOUT))) Read(*connections_[at]);
    }
  } else if (at < strangers_.size() && strangers_[at] != nullptr) {
    OnStranger(fd);
  }
}

bool Device::Poll() {
  bool moved = false;
  if (open_.size() > kDirectConnections) {
    moved = DispatchReady(0);
  } else {
    for (size_t i = 0; i < open_.size();) {
      Connection* connection = open_[i];
      if (connection->blocked) moved |= Write(*connection);
      if (i < open_.size() && open_[i] == connection) moved |= Read(*connection);
      if (i < open_.size() && open_[i] == connection) ++i;
    }
    if (listener_ && (open_.empty() || ++polls_ % kEpollEvery == 0)) moved |= DispatchReady(0);
  }
  return Flush() | moved;
}

// --- writing and reading ---

bool Device::Flush() {
  bool moved = false;
  std::vector<Link*>& links = engine_.with_output();
  while (!links.empty()) {
    Link* link = links.back();
    links.pop_back();
    if (link->is_gone() || !link->has_output()) continue;
    Connection* connection = ConnectionOf(*link);
    if (connection == nullptr) {
      StartConnect(*link);
    } else if (connection->state == Connection::State::kOpen && !connection->blocked) {
      moved |= Write(*connection);
    }
  }
  return moved;
}

bool Device::Write(Connection& connection) {
  Link& link = *connection.link;
  bool moved = false;
  iovec pieces[kPieces];
  while (link.has_output()) {
    const size_t count = link.PrepareWrite(pieces);
    const ssize_t written = connection.socket.Write({pieces, count});
    if (written == -EAGAIN) {
      if (!std::exchange(connection.blocked, true)) Modify(connection.socket.fd(), EPOLLIN | EPOLLOUT);
      return moved;
    }
    moved = true;
    if (written < 0) {
      OnWriteError(connection, static_cast<int>(-written));
      return moved;
    }
    link.Written(static_cast<size_t>(written));
  }
  if (std::exchange(connection.blocked, false)) Modify(connection.socket.fd(), EPOLLIN);
  return moved;
}

// What the peer sent before it went is still there to be read.
void Device::OnWriteError(Connection& connection, int error) {
  const size_t at = static_cast<size_t>(connection.socket.fd());
  while (connections_[at] != nullptr && Read(connection)) {
  }
  if (connections_[at] != nullptr) Lost(connection, error, "write");
}

bool Device::IsIdle(const Link& link) const {
  const Connection* connection = ConnectionOf(link);
  return connection != nullptr && connection->state == Connection::State::kOpen && !link.has_output();
}

size_t Device::WriteAtOnce(Link& link, std::span<const iovec> pieces) {
  Connection& connection = *ConnectionOf(link);
  const ssize_t written = connection.socket.Write(pieces);
  return written > 0 ? static_cast<size_t>(written) : 0;  // an error shows again when the rest is written
}

void Device::RaiseLowWater() {
  for (Connection* connection : open_) {
    const uint64_t to_come = connection->link->body_to_come();
    SetLowWater(*connection, to_come < kLongBody ? 1 : static_cast<size_t>(std::min<uint64_t>(to_come, kMostLowWater)));
  }
}

void Device::SetLowWater(Connection& connection, size_t bytes) {
  if (connection.low_water == bytes) return;
  connection.low_water = bytes;
  connection.socket.SetLowWater(bytes);
}

bool Device::Read(Connection& connection) {
  Link& link = *connection.link;
  iovec pieces[kPieces];
  bool moved = false;
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const size_t count = link.PrepareRead(pieces, staging_);
    size_t asked = 0;
    for (size_t i = 0; i < count; ++i) asked += pieces[i].iov_len;
    const ssize_t got = connection.socket.Read({pieces, count});
    if (got == -EAGAIN) return moved;
    if (got <= 0) {
      Lost(connection, static_cast<int>(-got), "read");
      return true;
    }
    moved = true;
    if (!link.ReadDone(static_cast<size_t>(got), staging_)) {
      LogWarning(Format("rank %d of MPI_COMM_WORLD sent something that is not a message; the connection is closed", link.peer()));
      Lost(connection, EPROTO, "read");
      return true;
    }
    if (link.body_to_come() < connection.low_water) SetLowWater(connection, 1);
    if (static_cast<size_t>(got) < asked) return true;
  }
  return true;
}

void Device::Lost(Connection& connection, int error, const char* what) {
  Link& link = *connection.link;
  if (TraceEnabled()) {
    Trace(Format("mpi: connection to rank %d ended (%s: %s)", link.peer(), what, error == 0 ? "end of stream" : std::strerror(error)));
  }
  Close(connection);
  engine_.OnGone(link.peer(), /*left=*/false);
}

void Device::Close(Connection& connection) {
  connection.link->connection = nullptr;
  std::erase(open_, &connection);
  Unwatch(connection.socket.fd());
  connections_[static_cast<size_t>(connection.socket.fd())].reset();
}

// --- connecting ---

template <typename T>
T& Place(std::vector<std::unique_ptr<T>>& table, int fd) {
  const size_t at = static_cast<size_t>(fd);
  if (at >= table.size()) table.resize(at + 1);
  table[at] = std::make_unique<T>();
  return *table[at];
}

Device::Connection& Device::Connect(Link& link, Socket socket) {
  const int fd = socket.fd();
  Connection& connection = Place(connections_, fd);
  connection.socket = std::move(socket);
  connection.link = &link;
  link.connection = &connection;
  return connection;
}

void Device::StartConnect(Link& link) {
  if (stopping_ || link.awaits_connection) return;
  std::string text;
  Error error = job_.Lookup(kKey, link.peer(), &text);
  const auto address = error.ok() ? ParseAddress(text) : std::nullopt;
  Socket socket;
  if (address) {
    socket = Socket::StartConnect(*address);
    if (!socket) error = Error(MPI_ERR_OTHER, std::strerror(errno));
  } else if (error.ok()) {
    error = Error(MPI_ERR_OTHER, "'" + text + "' is no address");
  }
  if (!socket) {
    LogWarning(Format("cannot connect to rank %d of MPI_COMM_WORLD: %s", link.peer(), error.message().c_str()));
    engine_.OnGone(link.peer(), /*left=*/false);
    return;
  }
  const int fd = socket.fd();
  Connect(link, std::move(socket));
  Add(fd, EPOLLOUT);
}

void Device::OnConnecting(Connection& connection) {
  const int error = connection.socket.ConnectError();
  if (error != 0) return Lost(connection, error, "connect");
  if (!SendGreeting(connection.socket, connection.link->peer(), Greeting::Answer::kHello)) {
    return Lost(connection, errno, "greet");
  }
  connection.state = Connection::State::kGreeting;
  Modify(connection.socket.fd(), EPOLLIN);
}

bool Device::SendGreeting(const Socket& socket, ProcessId to, Greeting::Answer answer) {
  // Ranks that spin empty it at once; those that share a processor would only take turns more often.
  if (SpinTime().count() != 0) transport::BoundSendBufferOnOneHost(socket.fd());
  uint8_t bytes[Greeting::kLength];
  Greeting{.secret = secret_, .from = job_.rank, .to = to, .window = engine_.limits().window, .answer = answer}.SerializeTo(bytes);
  const iovec piece = {bytes, sizeof(bytes)};
  return socket.Write({&piece, 1}) == static_cast<ssize_t>(sizeof(bytes));  // the first bytes on it: there is room
}

void Device::OnGreeting(Connection& connection) {
  const iovec piece = {connection.greeting + connection.greeting_have, sizeof(connection.greeting) - connection.greeting_have};
  const ssize_t got = connection.socket.Read({&piece, 1});
  if (got == -EAGAIN) return;
  if (got <= 0) return Lost(connection, static_cast<int>(-got), "greet");
  connection.greeting_have += static_cast<size_t>(got);
  if (connection.greeting_have < sizeof(connection.greeting)) return;
  const auto greeting = Greeting::Parse(connection.greeting);
  if (!greeting || !secret_.Matches(greeting->secret) || greeting->from != connection.link->peer() || greeting->to != job_.rank ||
      greeting->answer == Greeting::Answer::kHello) {
    LogWarning("closed a connection to " + connection.socket.PeerName() + ": what listens there is not of this job");
    return Lost(connection, EPROTO, "greet");
  }
  if (greeting->answer == Greeting::Answer::kWelcome) return Open(connection, *greeting);
  // Busy: theirs is on its way.
  connection.link->awaits_connection = true;
  Close(connection);
}

void Device::Open(Connection& connection, const Greeting& greeting) {
  connection.state = Connection::State::kOpen;
  connection.link->awaits_connection = false;
  connection.link->Open(greeting.window);
  open_.push_back(&connection);
  Write(connection);
}

void Device::OnListener() {
  while (Socket socket = listener_.Accept()) {
    const int fd = socket.fd();
    if (stranger_count_ >= kMostStrangers) {
      const auto now = Clock::now();
      for (auto& stranger : strangers_) {
        if (stranger == nullptr || now - stranger->since < kStrangerPatience) continue;
        Unwatch(stranger->socket.fd());
        stranger.reset();
        --stranger_count_;
      }
      if (stranger_count_ >= kMostStrangers) return;  // drops this one
    }
    Stranger& stranger = Place(strangers_, fd);
    stranger.socket = std::move(socket);
    stranger.since = Clock::now();
    ++stranger_count_;
    Add(fd, EPOLLIN);
    OnStranger(fd);
  }
}

void Device::OnStranger(int fd) {
  Stranger& stranger = *strangers_[static_cast<size_t>(fd)];
  const iovec piece = {stranger.greeting + stranger.have, sizeof(stranger.greeting) - stranger.have};
  const ssize_t got = stranger.socket.Read({&piece, 1});
  if (got == -EAGAIN) return;
  if (got > 0) stranger.have += static_cast<size_t>(got);
  if (got > 0 && stranger.have < sizeof(stranger.greeting)) return;
  Stranger taken = std::move(stranger);
  Unwatch(fd);
  strangers_[static_cast<size_t>(fd)].reset();
  --stranger_count_;
  // A peer whose connection to us gave way to ours before its greeting went out; or one who only tried the port.
  if (got <= 0 && taken.have == 0) return;
  const auto greeting = got > 0 ? Greeting::Parse(taken.greeting) : std::nullopt;
  if (!greeting || !secret_.Matches(greeting->secret) || greeting->to != job_.rank || greeting->from < 0 ||
      greeting->from >= job_.size || greeting->from == job_.rank || greeting->answer != Greeting::Answer::kHello) {
    LogWarning("dropped a connection from " + taken.socket.PeerName() + ": it does not come from a process of this job");
    return;
  }
  Adopt(std::move(taken), *greeting);
}

void Device::Adopt(Stranger stranger, const Greeting& greeting) {
  Link& link = engine_.LinkTo(greeting.from);
  Connection* ours = ConnectionOf(link);
  if (link.is_gone()) return;
  if (ours != nullptr && (ours->state == Connection::State::kOpen || greeting.from > job_.rank)) {
    SendGreeting(stranger.socket, greeting.from, Greeting::Answer::kBusy);
    return;
  }
  if (ours != nullptr) Close(*ours);
  const int fd = stranger.socket.fd();
  Connection& connection = Connect(link, std::move(stranger.socket));
  Add(fd, EPOLLIN);
  if (!SendGreeting(connection.socket, greeting.from, Greeting::Answer::kWelcome)) return Lost(connection, errno, "greet");
  Open(connection, greeting);
}

void Device::ConnectToAwaited() {
  std::vector<ProcessId> processes;
  engine_.ForEachAwaited([&](ProcessId process, const Comm& comm) {
    if (process != MPI_ANY_SOURCE) {
      processes.push_back(process);
    } else {
      processes.insert(processes.end(), comm.remote->members.begin(), comm.remote->members.end());
    }
  });
  std::sort(processes.begin(), processes.end());
  processes.erase(std::unique(processes.begin(), processes.end()), processes.end());
  for (ProcessId process : processes) {
    if (process == engine_.self()) continue;
    Link& link = engine_.LinkTo(process);
    if (!link.is_gone() && ConnectionOf(link) == nullptr) StartConnect(link);
  }
}

// --- the end ---

bool Device::HasOutput() const {
  return std::any_of(open_.begin(), open_.end(), [](const Connection* connection) { return connection->link->has_output(); });
}

// Polls until `done` or until nothing moved for `patience`.
template <typename Done>
void Device::PollUntil(Done done, std::chrono::milliseconds patience) {
  Clock::time_point last = Clock::now();
  while (!done()) {
    if (DispatchReady(10)) {
      last = Clock::now();
    } else if (Clock::now() - last > patience) {
      return;
    }
    Flush();
  }
}

void Device::Stop(std::chrono::milliseconds patience) {
  Flush();
  PollUntil([&] { return !engine_.HasUnfinishedSends() && !HasOutput(); }, patience);
  stopping_ = true;
  for (const auto& connection : connections_) {
    if (connection != nullptr && connection->state == Connection::State::kOpen && !connection->link->is_gone()) {
      connection->link->SendControl({.kind = FrameKind::kGoodbye});
    }
  }
  Flush();
  PollUntil([&] { return !HasOutput(); }, patience);
  for (Connection* connection : open_) connection->socket.ShutdownWrite();
  // A socket closed with data unread would take back what the other has not read yet.
  PollUntil([&] { return open_.empty(); }, patience);
  listener_.Close();
  while (!open_.empty()) Close(*open_.back());
  connections_.clear();
  strangers_.clear();
  open_.clear();
}

}  // namespace weft::mpi
