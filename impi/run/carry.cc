#include "impi/run/carry.h"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "base/check.h"
#include "pmi/launch/outbox.h"
#include "pmi/launch/poller.h"

namespace weft::impi {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr size_t kSpans = 16;                   // packets of one write
constexpr size_t kRead = 256 << 10;             // bytes of one read
constexpr std::chrono::seconds kCloseLimit{5};  // until the peers have closed, when all is over

struct Socket {
  Agent::Port port;
  Descriptor fd;
  bool deaf = false;       // the peer takes nothing more; what it has said is still read
  bool shut_down = false;  // to a host: this end has said all
};

class Carrier {
 public:
  Carrier(const Job& job, const Agent::Setup& setup, std::map<HostRank, Descriptor> hosts, std::vector<Descriptor> processes)
      : agent_(job, setup, Clock::now()), block_(kRead) {
    int32_t rank = job.host(setup.host).first.value;
    WEFT_CHECK(processes.size() == static_cast<size_t>(job.host(setup.host).processes));
    for (Descriptor& fd : processes) sockets_.push_back({WorldRank(rank++), std::move(fd)});
    for (auto& [host, fd] : hosts) sockets_.push_back({host, std::move(fd)});
    for (const Socket& socket : sockets_) pmi::SetNonBlocking(socket.fd.get());
  }

  std::optional<std::string> Run(const std::vector<Watched>& watched) {
    std::optional<std::string> failed;
    std::optional<Clock::time_point> closes_by;
    while (!failed && agent_.state() != Agent::State::kFailed) {
      if (agent_.state() == Agent::State::kEnded) {
        if (!closes_by) closes_by = Clock::now() + kCloseLimit;
        if (AllClosed() || *closes_by <= Clock::now()) return std::nullopt;
      }
      pmi::Poller poller;
      for (const Watched& one : watched) {
        poller.Watch(one.fd, POLLIN, [&](short) {
          if (const auto why = one.look()) failed = why;
        });
      }
      for (Socket& socket : sockets_) Watch(poller, socket);
      poller.Wait(static_cast<int>(Patience(closes_by)));
      agent_.OnTime(Clock::now());
      for (Socket& socket : sockets_) End(socket);
    }
    return failed ? failed : agent_.reason();
  }

 private:
  bool AllClosed() const {
    return std::all_of(sockets_.begin(), sockets_.end(), [](const Socket& socket) { return !socket.fd || std::holds_alternative<WorldRank>(socket.port); });
  }

  // Milliseconds; negative: no limit.
  long Patience(const std::optional<Clock::time_point>& closes_by) const {
    const auto deadline = closes_by ? closes_by : agent_.deadline();
    return deadline ? std::max(milliseconds(0), std::chrono::ceil<milliseconds>(*deadline - Clock::now())).count() : -1;
  }

  void Watch(pmi::Poller& poller, Socket& socket) {
    std::array<ByteSpan, 1> first;
    const bool reads = agent_.MayRead(socket.port) || socket.shut_down;
    const bool writes = !socket.deaf && agent_.Gather(socket.port, first) != 0;
    const auto events = static_cast<short>((reads ? POLLIN : 0) | (writes ? POLLOUT : 0));
    if (events == 0 || !socket.fd) return;
    poller.Watch(socket.fd.get(), events, [this, &socket, reads](short came) {
      if ((came & POLLOUT) != 0) Write(socket);
      if (!reads && (came & (POLLHUP | POLLERR)) != 0) socket.deaf = true;
      if (reads && (came & ~POLLOUT) != 0) Read(socket);
    });
  }

  void Write(Socket& socket) {
    std::array<ByteSpan, kSpans> spans;
    std::array<iovec, kSpans> parts;
    const size_t count = agent_.Gather(socket.port, spans);
    for (size_t i = 0; i < count; ++i) parts[i] = {const_cast<uint8_t*>(spans[i].data()), spans[i].size()};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = count;
    const ssize_t wrote = sendmsg(socket.fd.get(), &message, MSG_NOSIGNAL);
    if (wrote >= 0) return agent_.Wrote(socket.port, static_cast<size_t>(wrote), Clock::now());
    socket.deaf = errno != EAGAIN && errno != EINTR;
  }

  void Read(Socket& socket) {
    const long count = pmi::ReadSome(socket.fd.get(), reinterpret_cast<char*>(block_.data()), block_.size());
    if (count == -EAGAIN) return;
    if (count > 0) return agent_.OnBytes(socket.port, ByteSpan(block_).first(static_cast<size_t>(count)), Clock::now());
    agent_.OnClosed(socket.port);
    socket.fd.Close();
  }

  // What has ended: a process's connection is closed, a host's is shut down for this end (see Agent::IsOver).
  void End(Socket& socket) {
    if (!socket.fd) return;
    if (const auto* process = std::get_if<WorldRank>(&socket.port)) {
      if (!agent_.HasEnded(*process)) return;
      socket.fd.Close();
      agent_.OnClosed(socket.port);
    } else if (!socket.shut_down && agent_.IsOver(std::get<HostRank>(socket.port))) {
      shutdown(socket.fd.get(), SHUT_WR);
      socket.shut_down = true;
    }
  }

  Agent agent_;
  std::vector<uint8_t> block_;
  std::vector<Socket> sockets_;
};

}  // namespace

std::optional<std::string> CarryPackets(const Job& job, const Agent::Setup& setup, std::map<HostRank, Descriptor> hosts, std::vector<Descriptor> processes,
                                        const std::vector<Watched>& watched) {
  return Carrier(job, setup, std::move(hosts), std::move(processes)).Run(watched);
}

}  // namespace weft::impi
