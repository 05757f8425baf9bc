#include "impi/run/carry.h"

#include <malloc.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file_limit.h"
#include "base/passed_descriptor.h"
#include "base/warning_limit.h"
#include "impi/client/report.h"
#include "impi/entry/hello.h"
#include "pmi/launch/event_poller.h"
#include "pmi/launch/outbox.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kSpans = 16;                   // packets of one write
constexpr size_t kRead = 256 << 10;             // bytes of one read
constexpr milliseconds kPause{20};              // until the kernel is asked again that had no memory
// Bytes of freed packets that stay in the heap. By default the kernel would get them back, and clear them again, for each few packets: three quarters of an
// agent's time.
constexpr int kKept = 64 << 20;
constexpr std::chrono::seconds kCloseLimit{5};  // until the peers have closed, when all is over
// Connections that a process may take over: with each goes a message into its empty socket.
constexpr size_t kMostHandedOver = 64;

// Whether the kernel may have what it needs in a while.
bool IsPassing(int error) { return error == ENOBUFS || error == ENOMEM; }
bool IsNothing(int error) { return error == EAGAIN || error == EINTR; }

}  // namespace

class Carrier::Impl {
 public:
  Impl(const Job& job, Carrier::Setup setup, std::map<HostRank, Descriptor> hosts, AgentListener listener)
      : job_(job),
        setup_(std::move(setup)),
        agent_(job, setup_.agent, Clock::now()),
        entrance_(setup_.ranks, std::move(listener), poller_,
                  {.let_in = [this](const Reception::Guest& guest, Descriptor fd) { LetIn(guest, std::move(fd)); },
                   .warn = [this](const std::string& text) { Warn(__LINE__, text); },
                   .no_room = [this] { NoRoom(); }}),
        block_(kRead) {
    const Job::Host& own = job.host(setup_.agent.host);
    WEFT_CHECK(setup_.ranks.size() == static_cast<size_t>(own.processes));
    for (int32_t i = 0; i < own.processes; ++i) sockets_.push_back({.port = WorldRank(own.first.value + i)});
    for (auto& [host, fd] : hosts) {
      host_at_.emplace(host, sockets_.size());
      sockets_.push_back({.port = host, .fd = std::move(fd)});
    }
    if (own.processes == 1 && host_at_.size() <= kMostHandedOver && !host_at_.empty()) way_ = Way::kOpen;
  }

  void Watch(int fd, std::function<void()> look) {
    if (!poller_.Watch(fd, EPOLLIN, [look = std::move(look)](uint32_t) { look(); })) NoRoom();
  }
  void Fail(std::string why) {
    if (!failed_) failed_ = std::move(why);
  }
  void NoMoreProcesses(const std::string& how) {
    for (size_t place = 0; place < setup_.ranks.size(); ++place) {
      if (entrance_.HasCome(place)) continue;
      failed_by_process_ = true;
      return Fail(job_.NameOf(std::get<WorldRank>(sockets_[place].port)) + how);
    }
  }
  void Close() {
    for (auto& [host, at] : host_at_) {
      // The process has a descriptor of its own.
      if (way_ == Way::kProcess && sockets_[at].fd) shutdown(sockets_[at].fd.get(), SHUT_RDWR);
      Drop(sockets_[at]);
    }
    CloseProcesses();
  }
  void CloseProcesses() {
    for (Socket& socket : sockets_) {
      if (std::holds_alternative<WorldRank>(socket.port)) Drop(socket);
    }
    entrance_.Close();
  }
  bool FailedByProcess() const {
    return failed_by_process_ || (agent_.culprit() && std::holds_alternative<WorldRank>(*agent_.culprit()));
  }

  std::optional<std::string> Run() {
    mallopt(M_TRIM_THRESHOLD, kKept);
    for (Socket& socket : sockets_) {
      if (way_ == Way::kHere) Begin(socket);
    }
    entrance_.Open();
    Flush();
    std::optional<Clock::time_point> closes_by;
    while (!failed_ && agent_.state() != Agent::State::kFailed) {
      if (over_ || agent_.state() == Agent::State::kEnded) {
        if (!closes_by) closes_by = Clock::now() + kCloseLimit;
        if (AllClosed() || *closes_by <= Clock::now()) return std::nullopt;
      }
      poller_.Wait(Patience(closes_by));
      OnTime(Clock::now());
      Flush();
    }
    // A process that died is named rather than what followed from it.
    return agent_.state() == Agent::State::kFailed ? agent_.reason() : *failed_;
  }

 private:
  // Who carries the packets.
  enum class Way : uint8_t {
    kHere,     // this one
    kOpen,     // nobody, until the only process of this host has come and said what it can
    kProcess,  // that process (entry/hello.h)
  };
  struct Socket {
    Agent::Port port;
    Descriptor fd{};
    uint32_t watched = 0;    // events
    bool full = false;       // the kernel takes no more now
    bool deaf = false;       // the peer takes nothing more; what it has said is still read
    bool shut_down = false;  // to a host: this end has said all
    size_t unsaid = 0;       // bytes of the welcome, which come before the packets
    std::optional<Clock::time_point> pauses_until{};
  };

  Socket& At(Agent::Port port) {
    if (const auto* host = std::get_if<HostRank>(&port)) return sockets_[host_at_.at(*host)];
    return sockets_[static_cast<size_t>(std::get<WorldRank>(port).value - job_.host(setup_.agent.host).first.value)];
  }

  void NoRoom() { Fail("host " + std::to_string(setup_.agent.host.value) + " cannot watch another connection: " + DescribeShortage(errno)); }

  // --- time ---

  int Patience(const std::optional<Clock::time_point>& closes_by) const {
    std::optional<Clock::time_point> first = closes_by;
    for (const auto& other : {agent_.deadline(), entrance_.deadline(), pauses_until_}) {
      if (other && (!first || *other < *first)) first = other;
    }
    if (!first) return -1;
    return static_cast<int>(std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*first - Clock::now())).count());
  }

  void OnTime(Clock::time_point now) {
    agent_.OnTime(now);
    entrance_.OnTime(now);
    if (!pauses_until_ || *pauses_until_ > now) return;
    pauses_until_.reset();
    for (Socket& socket : sockets_) {
      if (!socket.pauses_until) continue;
      socket.pauses_until.reset();
      Write(socket);
    }
  }

  void Pause(Socket& socket) {
    socket.pauses_until = Clock::now() + kPause;
    if (!pauses_until_) pauses_until_ = socket.pauses_until;
  }

  // --- processes come in ---

  void LetIn(const Reception::Guest& guest, Descriptor fd) {
    Socket& socket = sockets_[static_cast<size_t>(guest.place)];
    socket.fd = std::move(fd);
    socket.unsaid = setup_.welcome.size();
    if (way_ == Way::kOpen) ChooseWay(socket, guest.takes_connections);
    Begin(socket);
    Write(socket);
  }

  // The only process of this host has come.
  void ChooseWay(const Socket& process, bool takes_connections) {
    way_ = takes_connections ? Way::kProcess : Way::kHere;
    for (auto& [host, at] : host_at_) {
      Socket& socket = sockets_[at];
      if (way_ == Way::kHere) {
        Begin(socket);
        continue;
      }
      pmi::SetNonBlocking(socket.fd.get());
      const Bytes notice = LinkNotice{host.value}.Serialize();
      if (SendWithDescriptor(process.fd.get(), notice, socket.fd.get()) == static_cast<ssize_t>(notice.size())) continue;
      return Fail("host " + std::to_string(setup_.agent.host.value) + " cannot hand its connections over to its process: " + DescribeShortage(errno));
    }
  }

  // What a process says that has taken the connections.
  void Hear(Socket& process, ByteSpan bytes) {
    reports_.Append(bytes);
    const auto command = reports_.NextCommand();
    if (!command && !reports_.refused_length()) return;
    if (command && command->code == kOverCommand) return Finish(process);
    const auto report = command && command->code == kFailCommand ? FailReport::From(*command) : std::nullopt;
    failed_by_process_ = !report || report->by_process;
    if (report) return Fail(report->why);
    Fail(job_.NameOf(std::get<WorldRank>(process.port)) + " sent something else than OVER or FAIL; use impirun and the MPI library from one release");
  }

  // The FINIs are through. As for Agent::IsOver, the connections stay until the peers have closed.
  void Finish(Socket& process) {
    over_ = true;
    Drop(process);
    for (auto& [host, at] : host_at_) {
      shutdown(sockets_[at].fd.get(), SHUT_WR);
      sockets_[at].shut_down = true;
      Begin(sockets_[at]);
    }
  }

  void Warn(int line, const std::string& text) {
    if (const auto admitted = warnings_.Admit({__FILE__, line}, text, Clock::now())) setup_.warn(*admitted);
  }

  // --- packets ---

  void Begin(Socket& socket) {
    if (!socket.fd) return;
    pmi::SetNonBlocking(socket.fd.get());
    Update(socket);
  }

  // A socket that is neither read nor written is not watched at all, because epoll would report its end again and again.
  void Update(Socket& socket) {
    if (!socket.fd) return;
    const bool reads = agent_.MayRead(socket.port) || socket.shut_down;
    const bool writes = socket.full && !socket.deaf && !socket.pauses_until;
    const uint32_t wanted = (reads ? EPOLLIN : 0u) | (writes ? EPOLLOUT : 0u);
    const uint32_t before = std::exchange(socket.watched, wanted);
    if (wanted == before) return;
    const int fd = socket.fd.get();
    if (wanted == 0) return poller_.Forget(fd);
    if (before != 0) return poller_.Change(fd, wanted);
    const auto at = static_cast<size_t>(&socket - sockets_.data());
    if (!poller_.Watch(fd, wanted, [this, at](uint32_t came) { OnReady(sockets_[at], came); })) NoRoom();
  }

  void OnReady(Socket& socket, uint32_t came) {
    if (!socket.fd) return;
    const bool reads = (socket.watched & EPOLLIN) != 0;
    if ((came & EPOLLOUT) != 0) Write(socket);
    if (!reads && (came & (EPOLLHUP | EPOLLERR)) != 0) socket.deaf = true;
    if (reads && (came & ~uint32_t{EPOLLOUT}) != 0) Read(socket);
    End(socket);
    Update(socket);
    Flush();
  }

  // Whatever has become possible by what came.
  void Flush() {
    for (;;) {
      const auto ready = agent_.TakeReady(), readable = agent_.TakeReadable();
      if (ready.empty() && readable.empty()) return;
      for (const Agent::Port port : ready) Write(At(port));
      for (const Agent::Port port : readable) Update(At(port));
    }
  }

  void Write(Socket& socket) {
    if (!socket.fd || socket.deaf || socket.pauses_until) return;
    socket.full = false;
    while (!socket.full && !socket.deaf) {
      std::array<ByteSpan, kSpans> spans;
      const size_t count = socket.unsaid == 0 ? agent_.Gather(socket.port, spans) : 1;
      if (count == 0) break;
      if (socket.unsaid != 0) spans[0] = ByteSpan(setup_.welcome).last(socket.unsaid);
      Send(socket, std::span(spans).first(count));
    }
    End(socket);
    Update(socket);
  }

  void Send(Socket& socket, std::span<const ByteSpan> spans) {
    std::array<iovec, kSpans> parts;
    for (size_t i = 0; i < spans.size(); ++i) parts[i] = {const_cast<uint8_t*>(spans[i].data()), spans[i].size()};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = spans.size();
    const ssize_t wrote = setup_.send_message(socket.fd.get(), &message, MSG_NOSIGNAL);
    if (wrote < 0) {
      socket.full = IsNothing(errno) || IsPassing(errno);
      socket.deaf = !socket.full;
      if (IsPassing(errno)) Pause(socket);
      return;
    }
    if (socket.unsaid == 0) return agent_.Wrote(socket.port, static_cast<size_t>(wrote), Clock::now());
    socket.unsaid -= static_cast<size_t>(wrote);
  }

  void Read(Socket& socket) {
    const long count = pmi::ReadSome(socket.fd.get(), reinterpret_cast<char*>(block_.data()), block_.size());
    if (count == -EAGAIN || (count < 0 && IsPassing(static_cast<int>(-count)))) return;
    if (way_ == Way::kProcess && std::holds_alternative<HostRank>(socket.port)) {  // after Finish
      if (count <= 0) Drop(socket);
      return;
    }
    if (way_ == Way::kProcess && count > 0) return Hear(socket, ByteSpan(block_).first(static_cast<size_t>(count)));
    if (count > 0) return agent_.OnBytes(socket.port, ByteSpan(block_).first(static_cast<size_t>(count)), Clock::now());
    Drop(socket);
    agent_.OnClosed(socket.port);
  }

  // What has ended: a process's connection is closed, a host's is shut down for this end (see Agent::IsOver).
  void End(Socket& socket) {
    if (!socket.fd || way_ == Way::kProcess) return;
    if (const auto* process = std::get_if<WorldRank>(&socket.port)) {
      if (!agent_.HasEnded(*process)) return;
      Drop(socket);
      agent_.OnClosed(socket.port);
    } else if (!socket.shut_down && agent_.IsOver(std::get<HostRank>(socket.port))) {
      shutdown(socket.fd.get(), SHUT_WR);
      socket.shut_down = true;
    }
  }

  void Drop(Socket& socket) {
    if (std::exchange(socket.watched, 0) != 0) poller_.Forget(socket.fd.get());
    socket.fd.Close();
  }

  bool AllClosed() const {
    return std::all_of(sockets_.begin(), sockets_.end(), [](const Socket& socket) { return !socket.fd || std::holds_alternative<WorldRank>(socket.port); });
  }

  const Job& job_;
  const Carrier::Setup setup_;
  Agent agent_;
  pmi::EventPoller poller_;
  Entrance entrance_;
  Way way_ = Way::kHere;
  CommandReader reports_{kLongestReport};
  bool over_ = false;  // the process that carried the packets says so
  std::vector<uint8_t> block_;
  std::vector<Socket> sockets_;            // first of processes, then of hosts
  std::map<HostRank, size_t> host_at_;     // in sockets_
  std::optional<Clock::time_point> pauses_until_;  // the first of a socket's
  WarningLimit warnings_;
  std::optional<std::string> failed_;
  bool failed_by_process_ = false;
};

Carrier::Carrier(const Job& job, Setup setup, std::map<HostRank, Descriptor> hosts, AgentListener listener)
    : impl_(std::make_unique<Impl>(job, std::move(setup), std::move(hosts), std::move(listener))) {}
Carrier::~Carrier() = default;

void Carrier::Watch(int fd, std::function<void()> look) { impl_->Watch(fd, std::move(look)); }
void Carrier::Fail(std::string why) { impl_->Fail(std::move(why)); }
void Carrier::NoMoreProcesses(const std::string& how) { impl_->NoMoreProcesses(how); }
std::optional<std::string> Carrier::Run() { return impl_->Run(); }
void Carrier::Close() { impl_->Close(); }
void Carrier::CloseProcesses() { impl_->CloseProcesses(); }
bool Carrier::FailedByProcess() const { return impl_->FailedByProcess(); }

}  // namespace weft::impi
