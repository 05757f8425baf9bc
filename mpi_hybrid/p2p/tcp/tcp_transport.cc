#include "mpi_hybrid/p2p/tcp/tcp_transport.h"

#include <errno.h>

#include <cstring>
#include <string>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"
#include "mpi_hybrid/core/job.h"
#include "pmi/client.h"
#include "transport/send_buffer.h"

namespace weft::mpi {
namespace {

constexpr char kKey[] = "weft-p2p";
constexpr size_t kStaging = 64 * 1024;
constexpr size_t kDirectConnections = 4;  // up to so many are read without asking epoll first
constexpr unsigned kEpollEvery = 32;      // rounds of reading directly, for listener and greetings
constexpr auto kTellOfShortageAgain = std::chrono::seconds(10);

}  // namespace

TcpTransport::TcpTransport(Job& job, Engine& engine, EventLoop& loop, bool short_buffers, bool beside_another)
    : job_(job),
      engine_(engine),
      loop_(loop),
      short_buffers_(short_buffers),
      beside_another_(beside_another),
      staging_(kStaging) {}

Error TcpTransport::Start() {
  return job_.size == 1 ? Error() : Listen();
}

// A job of one does so when others join it.
Error TcpTransport::Listen() {
  if (strangers_) return {};
  std::vector<transport::SocketAddress> addresses;
  for (const std::string& host : job_.hosts) {
    const auto address = transport::SocketAddress::Parse(host, 0);
    if (!address)
      return Error(MPI_ERR_OTHER, "the address of this host, '" + host + "', is not a numeric one (WEFT_MPI_HOST)");
    addresses.push_back(*address);
  }
  Socket listener = addresses.size() == 1 ? Socket::Listen(addresses[0]) : Socket::ListenEverywhere();
  if (!listener) {
    return Error(MPI_ERR_OTHER, "cannot listen on " + (addresses.size() == 1 ? job_.hosts[0] : "all addresses") +
                                    " (WEFT_MPI_HOST): " + DescribeShortage(errno));
  }
  for (transport::SocketAddress& address : addresses) address.set_port(listener.LocalAddress().port());
  strangers_.emplace(loop_, job_.processes, [this](Visitor visitor) { Admit(std::move(visitor)); });
  strangers_->Listen(std::move(listener));
  return job_.Publish(kKey, JoinAddresses(addresses, job_.pmi->max_value_length() - 1));
}

// --- connections that are open ---

bool TcpTransport::Poll() {
  bool moved = false;
  while (!holding_.empty()) {
    Connection* connection = ConnectionOf(holding_.back());
    holding_.pop_back();
    if (connection != nullptr && connection->holds()) moved |= connection->Write();
  }
  turns_now_.swap(turns_);
  for (const ProcessId process : turns_now_) {
    if (Connection* connection = ConnectionOf(process)) moved |= connection->WriteOn();
  }
  turns_now_.clear();
  if (open_.size() > kDirectConnections) return loop_.Dispatch(0) | moved;
  for (size_t i = 0; i < open_.size();) {
    Connection* connection = open_[i];
    moved |= connection->Poll();
    if (i < open_.size() && open_[i] == connection) ++i;
  }
  const bool only_connects = open_.empty() && (!beside_another_ || !calls_.empty());
  if (strangers_ && (only_connects || ++polls_ % kEpollEvery == 0)) moved |= loop_.Dispatch(0);
  return moved;
}

bool TcpTransport::Flush(Link& link) {
  if (Connection* connection = ConnectionOf(link.peer())) return connection->Write();
  Connect(link);
  return false;
}

size_t TcpTransport::WriteAtOnce(Link& link, std::span<const iovec> pieces, size_t /*total*/, uint32_t /*flow*/) {
  return ConnectionOf(link.peer())->WriteAtOnce(pieces);
}

size_t TcpTransport::WriteSoon(Link& link, std::span<const iovec> pieces, size_t total, uint32_t /*flow*/) {
  Connection& connection = *ConnectionOf(link.peer());
  if (!connection.Hold(pieces, total)) return connection.WriteAtOnce(pieces);
  if (holding_.empty() || holding_.back() != link.peer()) holding_.push_back(link.peer());
  return total;
}

bool TcpTransport::Arm() {
  for (Connection* connection : open_) connection->RaiseLowWater();
  return turns_.empty();
}

void TcpTransport::OnTurnOver(Connection& connection) { turns_.push_back(connection.link().peer()); }

void TcpTransport::OnLost(Connection& connection) {
  const ProcessId process = connection.link().peer();
  std::erase(open_, &connection);
  connections_[static_cast<size_t>(process)].reset();
  engine_.OnGone(process, /*left=*/false);
}

void TcpTransport::Open(Link& link, Socket socket, uint64_t window) {
  if (short_buffers_) transport::BoundSendBufferOnOneHost(socket.get());
  const size_t at = static_cast<size_t>(link.peer());
  if (at >= connections_.size()) connections_.resize(at + 1);
  connections_[at] = std::make_unique<Connection>(static_cast<Connection::Owner&>(*this), loop_, corks_, link, std::move(socket), staging_);
  open_.push_back(connections_[at].get());
  link.Open(window);
  connections_[at]->Write();
}

// --- connecting ---

void TcpTransport::Connect(Link& link) {
  const ProcessId process = link.peer();
  if (stopping_ || ConnectionOf(process) != nullptr || calls_.contains(process)) return;
  std::string published;
  Error error = job_.Lookup(kKey, process, &published);
  std::optional<Dial> dial;
  if (error.ok()) {
    dial = Dial::Make(published);
    if (!dial) error = Error(MPI_ERR_OTHER, "'" + published + "' is not an address");
  }
  if (!dial) {
    LogWarning("cannot connect to " + job_.processes.Describe(process) + ": " + error.message());
    engine_.OnGone(process, /*left=*/false);
    return;
  }
  calls_.emplace(process, Call{std::move(*dial), nullptr});
  TryDial(process);
}

// One attempt; what comes of it is another, at its time, or the end of all.
void TcpTransport::TryDial(ProcessId process) {
  Call& call = calls_.at(process);
  const auto now = Clock::now();
  Socket socket = Socket::StartConnect(call.dial.address());
  if (!socket) {
    const int error = errno;
    if (!IsShortage(error)) {
      call.dial.Begin(now);
      return OnDialEnd(process, call.dial.Failed(now, Dial::End::kNobody), Error(MPI_ERR_OTHER, std::strerror(error)));
    }
    if (!told_of_shortage_ || now - *told_of_shortage_ >= kTellOfShortageAgain) {
      LogWarning(Format("cannot open a connection to %s: %s; trying again for %d s",
                        job_.processes.Describe(process).c_str(), DescribeShortage(error).c_str(),
                        static_cast<int>(Dial::kPatience.count())));
      told_of_shortage_ = now;
    }
    const Dial::Next next = call.dial.NoRoom(now);
    strangers_->GiveWay(now);  // this call may be over then: one of them was the process itself
    if (next == Dial::Next::kUnreachable && calls_.contains(process))
      OnDialEnd(process, next, Error(MPI_ERR_OTHER, DescribeShortage(error)));
    return;
  }
  const Bond bond = job_.processes.BondOf(process);
  const Hello hello = {.from = job_.processes.own_name(),
                       .to = job_.processes.NameOf(process),
                       .bond = bond.id,
                       .window = engine_.limits().window};
  call.attempt = std::make_unique<Attempt>(static_cast<Attempt::Owner&>(*this), loop_, process, bond.secret,
                                           std::move(socket), hello, call.dial.Begin(now));
}

void TcpTransport::OnDialEnd(ProcessId process, Dial::Next next, const Error& error) {
  if (next == Dial::Next::kTry) return;
  calls_.erase(process);
  if (next == Dial::Next::kDead) return engine_.OnGone(process, /*left=*/false);
  engine_.OnUnreachable(
      process,
      Error(MPI_ERR_OTHER, "cannot connect to " + job_.processes.Describe(process) + ": " + error.message()));
}

void TcpTransport::OnEnd(Attempt& attempt, const Attempt::Result& result) {
  const ProcessId process = attempt.process();
  if (result.kind == Attempt::Result::Kind::kWelcome) {
    Socket socket = attempt.TakeSocket();
    calls_.erase(process);
    return Open(engine_.LinkTo(process), std::move(socket), result.window);
  }
  calls_.at(process).attempt.reset();
  if (result.kind == Attempt::Result::Kind::kBusy) {
    calls_.at(process).dial.Busy(Clock::now());  // theirs is on its way, if it gets through
  } else {
    OnFailed(process, result);
  }
}

// Nobody was there, or somebody who said nothing or closed the connection before it was open.
void TcpTransport::OnFailed(ProcessId process, const Attempt::Result& result) {
  if (TraceEnabled()) {
    Trace(Format("mpi: connecting to %s: %s", job_.processes.Describe(process).c_str(),
                 result.error == 0 ? "end of stream" : std::strerror(result.error)));
  }
  if (stopping_) {
    calls_.erase(process);
    return;
  }
  const Error error(MPI_ERR_OTHER, result.error == 0 ? "it closes each connection; has it run out of descriptors?"
                                                     : std::strerror(result.error));
  OnDialEnd(process, calls_.at(process).dial.Failed(Clock::now(), result.end), error);
}

bool TcpTransport::AnswerVisitor(const Visitor& visitor, Answer::Kind kind) {
  uint8_t bytes[Answer::kLength];
  Answer{.window = engine_.limits().window, .kind = kind}.Write(visitor.bond->secret, visitor.challenge,
                                                                visitor.hello_bytes, bytes);
  const iovec piece = {bytes, sizeof(bytes)};
  return visitor.socket.Write({&piece, 1}) == static_cast<ssize_t>(sizeof(bytes));  // there is room
}

void TcpTransport::Admit(Visitor visitor) {
  const ProcessId process = visitor.process;
  Link& link = engine_.LinkTo(process);
  if (link.is_gone()) return;
  // While ours connects the visitor has not heard of us on it, and may never: only from our Hello on it may have
  // admitted us.
  const auto ours = calls_.find(process);
  const bool ours_stays = ours != calls_.end() && ours->second.attempt != nullptr &&
                          ours->second.attempt->has_greeted() &&
                          job_.processes.NameOf(process) > job_.processes.own_name();
  if (ConnectionOf(process) != nullptr || ours_stays) {
    AnswerVisitor(visitor, Answer::Kind::kBusy);
    return;
  }
  const bool dialled = calls_.erase(process) != 0;
  if (!AnswerVisitor(visitor, Answer::Kind::kWelcome)) {  // it is gone again
    if (dialled || link.has_output()) Connect(link);
    return;
  }
  Open(link, std::move(visitor.socket), visitor.window);
}

std::optional<TcpTransport::Clock::time_point> TcpTransport::deadline() const {
  std::optional<Clock::time_point> first;
  const auto take = [&](const std::optional<Clock::time_point>& at) {
    if (at && (!first || *at < *first)) first = at;
  };
  if (strangers_) take(strangers_->deadline());
  if (!open_.empty()) take(look_at_);
  for (const auto& [process, call] : calls_)
    take(call.attempt != nullptr ? call.attempt->give_up_at() : call.dial.retry_at());
  return first;
}

void TcpTransport::OnTime(Clock::time_point now) {
  if (now >= look_at_) {
    look_at_ = now + kSilenceLook;
    for (Connection* connection : open_) connection->LookForPeer(now);
  }
  if (strangers_) strangers_->OnTime(now);
  std::vector<ProcessId> waiting;  // each attempt may change calls_
  for (const auto& entry : calls_) waiting.push_back(entry.first);
  for (const ProcessId process : waiting) {
    const auto call = calls_.find(process);
    if (call == calls_.end()) continue;
    Attempt* attempt = call->second.attempt.get();
    if (attempt == nullptr) {
      if (now >= call->second.dial.retry_at()) TryDial(process);
    } else if (attempt->give_up_at() && now >= *attempt->give_up_at()) {
      attempt->GiveUp();
    }
  }
}

// --- the end ---

void TcpTransport::EndOutput(Link& link) {
  if (Connection* connection = ConnectionOf(link.peer())) connection->EndOutput();
}

void TcpTransport::Close() {
  if (strangers_) strangers_->Close();
  calls_.clear();
  open_.clear();
  connections_.clear();
}

bool TcpTransport::IsConnected(const Link& link) const {
  return ConnectionOf(link.peer()) != nullptr || calls_.contains(link.peer());
}

void TcpTransport::Drop(const Link& link) {
  calls_.erase(link.peer());
  Connection* connection = ConnectionOf(link.peer());
  if (connection == nullptr) return;
  std::erase(open_, connection);
  connections_[static_cast<size_t>(link.peer())].reset();
}

}  // namespace weft::mpi
