#include "mpi_hybrid/p2p/device.h"

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/deadline.h"
#include "base/file_limit.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/p2p/process_device.h"
#include "pmi/client.h"
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
// A receive from anyone watches those that follow in the communicator, no more: a connection to each member would take a descriptor for each at
// each. Every member is watched by as many.
constexpr size_t kMostWatchedOfAny = 16;
constexpr auto kTellAgain = std::chrono::seconds(10);

}  // namespace

Device::~Device() = default;

Error Device::Start() {
  RaiseFileLimit();
  secret_ = JobSecret::FromHex(job_.secret);
  if (!secret_ && job_.size > 1) return Error(MPI_ERR_INTERN, "the job's secret is not 32 hexadecimal digits");
  wake_ = Socket(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!wake_ || !events_.Create()) return Error(MPI_ERR_OTHER, "cannot create a descriptor for events: " + DescribeShortage(errno));
  events_.Add(wake_.fd(), EPOLLIN);
  staging_.resize(kStaging);
  if (job_.size == 1) return {};
  std::vector<transport::SocketAddress> addresses;
  for (const std::string& host : job_.hosts) {
    const auto address = transport::SocketAddress::Parse(host, 0);
    if (!address) return Error(MPI_ERR_OTHER, "the address of this host, '" + host + "', is not a numeric one (WEFT_MPI_HOST)");
    addresses.push_back(*address);
  }
  Socket listener = addresses.size() == 1 ? Socket::Listen(addresses[0]) : Socket::ListenEverywhere();
  if (!listener) {
    return Error(MPI_ERR_OTHER, "cannot listen on " + (addresses.size() == 1 ? job_.hosts[0] : "all addresses") + " (WEFT_MPI_HOST): " +
                                    DescribeShortage(errno));
  }
  for (transport::SocketAddress& address : addresses) address.set_port(listener.LocalAddress().port());
  strangers_.emplace(events_, *secret_, job_.rank, job_.size, [this](Visitor visitor) { Admit(std::move(visitor)); });
  strangers_->Listen(std::move(listener));
  return job_.Publish(kKey, JoinAddresses(addresses, job_.pmi->max_value_length() - 1));
}

// --- epoll ---

void Device::Watch(int fd) { events_.Add(fd, EPOLLIN); }

void Device::Unwatch(int fd) { events_.Remove(fd); }

void Device::Wake() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.fd(), &one, sizeof(one));
}

bool Device::Sleep(int timeout_ms) {
  epoll_event events[64];
  RaiseLowWater();
  const auto due = deadline();
  const int until_due = due ? MillisecondsUntil(*due) : -1;
  const bool earlier = until_due >= 0 && (timeout_ms < 0 || until_due < timeout_ms);
  LibraryLock::Release();
  const int count = events_.Wait(events, earlier ? until_due : timeout_ms);
  LibraryLock::Acquire();
  for (int i = 0; i < count; ++i) OnReady(events[i].data.fd, events[i].events);
  OnTime();
  Flush();
  return count > 0;
}

bool Device::DispatchReady(int timeout_ms) {
  epoll_event events[64];
  const int count = events_.Wait(events, timeout_ms);
  bool any = false;
  for (int i = 0; i < count; ++i) {
    if (events[i].data.fd == wake_.fd()) continue;  // for the thread that sleeps, which would sleep on if it were read here
    OnReady(events[i].data.fd, events[i].events);
    any = true;
  }
  OnTime();
  return any;
}

// Events may be stale: another thread or an earlier event closed the descriptor, or gave it a new meaning. Each handler copes with not
// being ready.
void Device::OnReady(int fd, uint32_t events) {
  const size_t at = static_cast<size_t>(fd);
  if (fd == wake_.fd()) {
    uint64_t count;
    [[maybe_unused]] const ssize_t got = read(fd, &count, sizeof(count));
  } else if (at < connections_.size() && connections_[at] != nullptr) {
    Connection& connection = *connections_[at];
    switch (connection.state) {
      case Connection::State::kConnecting:
        OnConnecting(connection);
        break;
      case Connection::State::kGreeting:
        OnGreeting(connection);
        break;
      case Connection::State::kOpen:
        if (events & EPOLLOUT) Write(connection);
        // Write may have closed it.
        if (connections_[at] != nullptr && (events & ~static_cast<uint32_t>(EPOLLOUT))) Read(*connections_[at]);
    }
  } else if (strangers_ && strangers_->Owns(fd)) {
    strangers_->OnReady(fd);
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
    if (strangers_ && (open_.empty() || ++polls_ % kEpollEvery == 0)) moved |= DispatchReady(0);
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
      if (!std::exchange(connection.blocked, true)) events_.Modify(connection.socket.fd(), EPOLLIN | EPOLLOUT);
      return moved;
    }
    moved = true;
    if (written < 0) {
      OnWriteError(connection, static_cast<int>(-written));
      return moved;
    }
    link.Written(static_cast<size_t>(written));
  }
  if (std::exchange(connection.blocked, false)) events_.Modify(connection.socket.fd(), EPOLLIN);
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
  events_.Remove(connection.socket.fd());
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
  const ProcessId process = link.peer();
  if (stopping_ || dials_.contains(process)) return;
  std::string published;
  Error error = job_.Lookup(kKey, process, &published);
  std::optional<Dial> dial;
  if (error.ok()) {
    dial = Dial::Make(published);
    if (!dial) error = Error(MPI_ERR_OTHER, "'" + published + "' is no address");
  }
  if (!dial) {
    LogWarning(Format("cannot connect to rank %d of MPI_COMM_WORLD: %s", process, error.message().c_str()));
    engine_.OnGone(process, /*left=*/false);
    return;
  }
  dials_.emplace(process, std::move(*dial));
  TryDial(process);
}

// One attempt; what comes of it is another, at its time, or the end of all.
void Device::TryDial(ProcessId process) {
  Dial& dial = dials_.at(process);
  const auto now = Clock::now();
  Socket socket = Socket::StartConnect(dial.address());
  if (!socket) {
    const int error = errno;
    if (!IsShortage(error)) {
      dial.Begin(now);
      return OnDialEnd(process, dial.Failed(now, Dial::End::kNobody), Error(MPI_ERR_OTHER, std::strerror(error)));
    }
    if (!told_of_shortage_ || now - *told_of_shortage_ >= kTellAgain) {
      LogWarning(Format("no room for a connection to rank %d of MPI_COMM_WORLD: %s; it is tried again for %d s", process,
                        DescribeShortage(error).c_str(), static_cast<int>(Dial::kPatience.count())));
      told_of_shortage_ = now;
    }
    const Dial::Next next = dial.NoRoom(now);
    strangers_->GiveWay(now);  // this dial may be over then: one of them was the process itself
    if (next == Dial::Next::kUnreachable && dials_.contains(process)) OnDialEnd(process, next, Error(MPI_ERR_OTHER, DescribeShortage(error)));
    return;
  }
  const int fd = socket.fd();
  Connection& connection = Connect(engine_.LinkTo(process), std::move(socket));
  connection.give_up_at = dial.Begin(now);
  events_.Add(fd, EPOLLIN);
}

void Device::OnDialEnd(ProcessId process, Dial::Next next, const Error& error) {
  if (next == Dial::Next::kTry) return;
  dials_.erase(process);
  if (next == Dial::Next::kDead) return engine_.OnGone(process, /*left=*/false);
  ++unreached_;
  engine_.OnUnreachable(process, Error(MPI_ERR_OTHER, Format("cannot connect to rank %d of MPI_COMM_WORLD: %s", process,
                                                             error.message().c_str())));
}

// Nobody was there, or somebody who said nothing or closed the connection before it was open.
void Device::OnNotGreeted(Connection& connection, int error, Dial::End end) {
  const ProcessId process = connection.link->peer();
  if (TraceEnabled()) {
    Trace(Format("mpi: connecting to rank %d: %s", process, error == 0 ? "end of stream" : std::strerror(error)));
  }
  Close(connection);
  if (stopping_) return dials_.clear();
  OnDialEnd(process, dials_.at(process).Failed(Clock::now(), end),
            Error(MPI_ERR_OTHER, error == 0 ? "it closes each connection; is there a descriptor left for it?" : std::strerror(error)));
}

void Device::OnConnecting(Connection& connection) {
  const int error = connection.socket.ConnectError();
  if (error != 0) return OnNotGreeted(connection, error, error == ECONNRESET || error == EPIPE ? Dial::End::kClosed : Dial::End::kNobody);
  const iovec piece = {connection.challenge + connection.have, sizeof(connection.challenge) - connection.have};
  const ssize_t got = connection.socket.Read({&piece, 1});
  if (got == -EAGAIN) return;
  connection.give_up_at.reset();
  if (got <= 0) return OnNotGreeted(connection, static_cast<int>(-got), Dial::End::kClosed);
  connection.have += static_cast<size_t>(got);
  if (connection.have < sizeof(connection.challenge)) return;
  if (!Challenge::IsOne(connection.challenge)) return OnNotGreeted(connection, EPROTO, Dial::End::kClosed);
  BoundSendBuffer(connection.socket);
  Hello{.from = job_.rank, .to = connection.link->peer(), .window = engine_.limits().window}.Write(*secret_, connection.challenge,
                                                                                                   connection.hello);
  const iovec hello = {connection.hello, sizeof(connection.hello)};  // the first bytes on it: there is room
  if (connection.socket.Write({&hello, 1}) != static_cast<ssize_t>(sizeof(connection.hello))) {
    return OnNotGreeted(connection, errno, Dial::End::kClosed);
  }
  connection.have = 0;
  connection.state = Connection::State::kGreeting;
}

// Ranks that spin empty it at once; those that share a processor would only take turns more often.
void Device::BoundSendBuffer(const Socket& socket) {
  if (SpinTime().count() != 0) transport::BoundSendBufferOnOneHost(socket.fd());
}

void Device::OnGreeting(Connection& connection) {
  const iovec piece = {connection.answer + connection.have, sizeof(connection.answer) - connection.have};
  const ssize_t got = connection.socket.Read({&piece, 1});
  if (got == -EAGAIN) return;
  if (got <= 0) return OnNotGreeted(connection, static_cast<int>(-got), Dial::End::kClosed);
  connection.have += static_cast<size_t>(got);
  if (connection.have < sizeof(connection.answer)) return;
  const auto answer = Answer::Read(*secret_, connection.challenge, connection.hello, connection.answer);
  if (!answer) {
    LogWarning("closed a connection to " + connection.socket.PeerName() + ": what listens there is not of this job");
    return OnNotGreeted(connection, EPROTO, Dial::End::kClosed);
  }
  if (answer->kind == Answer::Kind::kBusy) {
    // Theirs is on its way, if it gets through.
    dials_.at(connection.link->peer()).Busy(Clock::now());
    return Close(connection);
  }
  dials_.erase(connection.link->peer());
  Open(connection, answer->window);
}

void Device::Open(Connection& connection, uint64_t window) {
  connection.state = Connection::State::kOpen;
  connection.link->Open(window);
  open_.push_back(&connection);
  Write(connection);
}

bool Device::AnswerVisitor(const Visitor& visitor, Answer::Kind kind) {
  uint8_t bytes[Answer::kLength];
  Answer{.window = engine_.limits().window, .kind = kind}.Write(*secret_, visitor.challenge, visitor.hello_bytes, bytes);
  const iovec piece = {bytes, sizeof(bytes)};
  return visitor.socket.Write({&piece, 1}) == static_cast<ssize_t>(sizeof(bytes));  // there is room
}

void Device::Admit(Visitor visitor) {
  Link& link = engine_.LinkTo(visitor.hello.from);
  Connection* ours = ConnectionOf(link);
  if (link.is_gone()) return;
  // While ours connects the visitor has not heard of us on it, and may never: only from our Hello on it may have admitted us.
  if (ours != nullptr && (ours->state == Connection::State::kOpen ||
                          (ours->state == Connection::State::kGreeting && visitor.hello.from > job_.rank))) {
    AnswerVisitor(visitor, Answer::Kind::kBusy);
    return;
  }
  if (ours != nullptr) Close(*ours);
  const bool dialled = dials_.erase(visitor.hello.from) != 0;
  BoundSendBuffer(visitor.socket);
  if (!AnswerVisitor(visitor, Answer::Kind::kWelcome)) {  // it is gone again
    if (dialled || link.has_output()) StartConnect(link);
    return;
  }
  const int fd = visitor.socket.fd();
  Connection& connection = Connect(link, std::move(visitor.socket));
  events_.Add(fd, EPOLLIN);
  Open(connection, visitor.hello.window);
}

std::optional<Device::Clock::time_point> Device::deadline() const {
  std::optional<Clock::time_point> first;
  const auto take = [&](const std::optional<Clock::time_point>& at) {
    if (at && (!first || *at < *first)) first = at;
  };
  if (strangers_) take(strangers_->deadline());
  for (const auto& [process, dial] : dials_) {
    const Connection* connection = ConnectionOf(*engine_.FindLink(process));
    take(connection != nullptr ? connection->give_up_at : dial.retry_at());
  }
  return first;
}

void Device::OnTime() {
  const auto due = deadline();
  if (!due) return;
  const auto now = Clock::now();
  if (now < *due) return;
  if (strangers_) strangers_->OnTime(now);
  std::vector<ProcessId> waiting;  // each attempt may change dials_
  for (const auto& entry : dials_) waiting.push_back(entry.first);
  for (const ProcessId process : waiting) {
    const auto dial = dials_.find(process);
    if (dial == dials_.end()) continue;
    Connection* connection = ConnectionOf(*engine_.FindLink(process));
    if (connection == nullptr) {
      if (now >= dial->second.retry_at()) TryDial(process);
    } else if (connection->give_up_at && now >= *connection->give_up_at) {
      OnNotGreeted(*connection, ETIMEDOUT, connection->socket.IsConnected() ? Dial::End::kSilent : Dial::End::kNobody);
    }
  }
}

void Device::ConnectToAwaited() {
  std::vector<ProcessId> processes;
  engine_.ForEachAwaited([&](ProcessId process, const Comm& comm) {
    if (process != MPI_ANY_SOURCE) {
      processes.push_back(process);
      return;
    }
    const std::vector<ProcessId>& members = comm.remote->members;
    const size_t count = std::min(members.size(), kMostWatchedOfAny);
    for (size_t i = 1; i <= count; ++i) processes.push_back(members[(static_cast<size_t>(comm.rank) + i) % members.size()]);
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
  if (strangers_) strangers_->Close();
  while (!open_.empty()) Close(*open_.back());
  connections_.clear();
  dials_.clear();
  open_.clear();
}

}  // namespace weft::mpi
