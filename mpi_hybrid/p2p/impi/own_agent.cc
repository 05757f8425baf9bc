#include "mpi_hybrid/p2p/impi/own_agent.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <utility>

#include "impi/client/report.h"

namespace weft::mpi {
namespace {

constexpr size_t kRead = 256 << 10;           // bytes, of one read
constexpr size_t kSpans = 16;                 // packets of one write
constexpr size_t kUnsent = 256 << 10;         // bytes of packets of this process that may wait for sockets
constexpr size_t kMostTried = 2;              // sockets that are read without asking first which of them have something
constexpr unsigned kLooks = 256;              // receptions in vain for one look at impirun, while the loop is not run
constexpr std::chrono::milliseconds kPause{20};  // until the kernel is asked again that had no memory

impi::Agent::Setup SetupOf(const ImpiWorld& world) {
  uint32_t lam_clients = 0;
  for (int client = 0; client < world.job().clients(); ++client) {
    if (world.IsLam(impi::ClientRank(client))) lam_clients |= uint32_t{1} << client;
  }
  return {.host = world.job().process(world.self()).host, .process_budget = kUnsent, .lam_clients = lam_clients};
}

bool IsNothing(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }
bool IsPassing(int error) { return error == ENOBUFS || error == ENOMEM; }

}  // namespace

OwnAgent::OwnAgent(const ImpiWorld& world, Descriptor impirun, std::map<impi::HostRank, Descriptor> hosts)
    : self_(world.self()),
      impirun_(std::move(impirun)),
      of_rank_(world.job().hosts().size(), -1),
      agent_(world.job(), SetupOf(world), Clock::now()),
      block_(kRead) {
  for (auto& [rank, socket] : hosts) {
    of_rank_[static_cast<size_t>(rank.value)] = static_cast<int32_t>(hosts_.size());
    hosts_.push_back({.rank = rank, .socket = std::move(socket)});
  }
}

void OwnAgent::Start(EventLoop& loop, EventLoop::Handler& handler) {
  handler_ = &handler;
  registration_ = EventLoop::Registration(loop, impirun_.get(), EPOLLIN, *this);
  for (Host& host : hosts_) host.registration = EventLoop::Registration(loop, host.socket.get(), EPOLLIN, handler);
}

// --- in ---

ssize_t OwnAgent::Receive(std::span<uint8_t> into) {
  size_t taken = ended_ ? 0 : Take(into);
  if (taken == 0 && !ended_) {
    ReadHosts();
    taken = Take(into);
    WriteHosts();
  }
  if (taken != 0) return static_cast<ssize_t>(taken);
  if (!ended_ && ++in_vain_ % kLooks == 0) LookAtImpirun();
  if (CheckEnd()) return 0;
  errno = EAGAIN;
  return -1;
}

size_t OwnAgent::Take(std::span<uint8_t> into) {
  size_t taken = 0;
  while (taken < into.size()) {
    std::array<ByteSpan, kSpans> spans;
    const size_t count = agent_.Gather(self_, spans);
    if (count == 0) break;
    size_t copied = 0;
    for (size_t i = 0; i < count && taken + copied < into.size(); ++i) {
      const size_t size = std::min(spans[i].size(), into.size() - taken - copied);
      std::memcpy(into.data() + taken + copied, spans[i].data(), size);
      copied += size;
    }
    agent_.Wrote(self_, copied, Clock::now());
    taken += copied;
  }
  return taken;
}

void OwnAgent::ReadHosts() {
  if (hosts_.size() <= kMostTried) {
    for (Host& host : hosts_) Read(host);
    return;
  }
  std::array<pollfd, 64> asked;
  for (size_t first = 0; first < hosts_.size(); first += asked.size()) {
    const size_t count = std::min(asked.size(), hosts_.size() - first);
    for (size_t i = 0; i < count; ++i) asked[i] = {hosts_[first + i].over ? -1 : hosts_[first + i].socket.get(), POLLIN, 0};
    if (poll(asked.data(), count, 0) <= 0) continue;
    for (size_t i = 0; i < count; ++i) {
      if (asked[i].revents != 0) Read(hosts_[first + i]);
    }
  }
}

void OwnAgent::Read(Host& host) {
  if (host.over || !agent_.MayRead(host.rank)) return;
  const ssize_t got = recv(host.socket.get(), block_.data(), block_.size(), MSG_DONTWAIT);
  if (got < 0 && (IsNothing(errno) || IsPassing(errno))) return;
  if (got > 0) return agent_.OnBytes(host.rank, ByteSpan(block_).first(static_cast<size_t>(got)), Clock::now());
  host.over = true;
  host.registration.End();  // it would be ready for ever
  agent_.OnClosed(host.rank);
}

// --- out ---

ssize_t OwnAgent::Send(std::span<const iovec> pieces) {
  if (!agent_.MayRead(self_)) WriteHosts();
  if (CheckEnd()) {
    errno = EPIPE;
    return -1;
  }
  if (!agent_.MayRead(self_)) {
    errno = EAGAIN;
    return -1;
  }
  size_t total = 0;
  const auto now = Clock::now();
  for (const iovec& piece : pieces) {
    agent_.OnBytes(self_, {static_cast<const uint8_t*>(piece.iov_base), piece.iov_len}, now);
    total += piece.iov_len;
  }
  WriteHosts();
  return static_cast<ssize_t>(total);
}

void OwnAgent::WriteHosts() {
  for (const impi::Agent::Port port : agent_.TakeReady()) {
    if (const auto* rank = std::get_if<impi::HostRank>(&port)) hosts_[static_cast<size_t>(of_rank_[static_cast<size_t>(rank->value)])].ready = true;
  }
  for (Host& host : hosts_) {
    if (host.ready) Write(host);
  }
  (void)agent_.TakeReadable();  // MayRead is asked before each read
}

void OwnAgent::Write(Host& host) {
  bool full = false;
  while (!full && !host.deaf) {
    std::array<ByteSpan, kSpans> spans;
    const size_t count = agent_.Gather(host.rank, spans);
    host.ready = count != 0;
    if (count == 0) break;
    std::array<iovec, kSpans> pieces;
    for (size_t i = 0; i < count; ++i) pieces[i] = {const_cast<uint8_t*>(spans[i].data()), spans[i].size()};
    msghdr message{};
    message.msg_iov = pieces.data();
    message.msg_iovlen = count;
    const ssize_t wrote = sendmsg(host.socket.get(), &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote >= 0) {
      agent_.Wrote(host.rank, static_cast<size_t>(wrote), Clock::now());
      continue;
    }
    full = IsNothing(errno) || IsPassing(errno);
    if (IsPassing(errno)) asks_again_ = Clock::now() + kPause;
    host.deaf = !full;
  }
  if (host.deaf) host.ready = false;
  if (std::exchange(host.full, full) != full && !host.over) host.registration.SetEvents(full ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

// --- time, and the end ---

std::optional<EventLoop::Clock::time_point> OwnAgent::deadline() const {
  const auto first = ended_ ? std::nullopt : agent_.deadline();
  if (!first || !asks_again_) return first ? first : asks_again_;
  return std::min(*first, *asks_again_);
}

void OwnAgent::OnTime(Clock::time_point now) {
  if (asks_again_ && *asks_again_ <= now) asks_again_.reset();
  agent_.OnTime(now);
  WriteHosts();
}

void OwnAgent::OnReady(uint32_t events) {
  LookAtImpirun();
  handler_->OnReady(events);
}

// It says nothing; if it closes before the end, the job has failed, and impirun says why.
void OwnAgent::LookAtImpirun() {
  if (ended_) return;
  char nothing;
  const ssize_t got = recv(impirun_.get(), &nothing, sizeof nothing, MSG_DONTWAIT);
  if (got < 0 && IsNothing(errno)) return;
  ended_ = true;
  registration_.End();
}

bool OwnAgent::CheckEnd() {
  if (ended_) return true;
  if (agent_.state() == impi::Agent::State::kRunning) return false;
  if (agent_.state() == impi::Agent::State::kEnded) {
    Say({impi::kOverCommand, {}});
  } else {
    const bool by_process = agent_.culprit() && std::holds_alternative<impi::WorldRank>(*agent_.culprit());
    Say(impi::FailReport{by_process, agent_.reason()}.ToCommand());
  }
  ended_ = true;
  return true;
}

// A few bytes, the only ones on this socket; if impirun is gone, nobody needs them.
void OwnAgent::Say(const impi::Command& command) {
  const impi::Bytes bytes = command.Serialize();
  (void)!send(impirun_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void OwnAgent::Close() {
  ended_ = true;
  registration_.End();
  for (Host& host : hosts_) host.registration.End();
  hosts_.clear();
  impirun_.Close();
}

}  // namespace weft::mpi
