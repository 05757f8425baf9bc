#include "mpi_hybrid/p2p/tcp/strangers.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <utility>

#include "base/file_limit.h"
#include "base/log.h"

namespace weft::mpi {
namespace {

constexpr int kAcceptsPerTurn = 64;  // before connections that are there have theirs
constexpr auto kTellAgain = std::chrono::seconds(10);

}  // namespace

void Strangers::Listen(Socket listener) {
  listener_ = std::move(listener);
  Reserve();
  events_.Add(listener_.fd(), EPOLLIN);
}

void Strangers::Close() {
  listener_.Close();
  reserve_.Close();
  strangers_.clear();
  by_age_.clear();
  paused_until_.reset();
}

void Strangers::OnReady(int fd) {
  if (fd == listener_.fd()) {
    Accept();
  } else if (Stranger* stranger = Find(fd)) {
    Read(*stranger);
  }
}

void Strangers::Accept() {
  const auto now = Clock::now();
  for (int turn = 0; turn < kAcceptsPerTurn; ++turn) {
    if (by_age_.size() >= kMost && !GiveWay(now)) return Pause(now);
    Socket socket = listener_.Accept();
    if (socket) {
      starved_since_.reset();
      Take(std::move(socket), now);
      Reserve();
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) {  // there was a descriptor, and nobody to give it to
      starved_since_.reset();
      return Reserve();
    }
    if (!IsShortage(error)) continue;  // who connected is gone again (accept(2))
    if (GiveWay(now)) continue;
    OnShortage(error, now);
    return Pause(now);
  }
}

void Strangers::OnShortage(int error, Clock::time_point now) {
  if (!starved_since_) starved_since_ = now;
  if (!told_ || now - *told_ >= kTellAgain) {
    LogWarning("no room for a connection that another rank opens: " + DescribeShortage(error) + "; it waits");
    told_ = now;
  }
  if (now - *starved_since_ >= kStarved) TurnAway();
}

void Strangers::TurnAway() {
  for (int turn = 0; turn < kAcceptsPerTurn && reserve_; ++turn) {
    reserve_.Close();
    const bool any = static_cast<bool>(listener_.Accept());  // and closed again
    Reserve();
    if (!any) return;
  }
}

void Strangers::Reserve() {
  if (!reserve_) reserve_ = Socket(eventfd(0, EFD_CLOEXEC));
}

// A listener that is watched but not accepted from would end every sleep at once.
void Strangers::Pause(Clock::time_point now) {
  if (!paused_until_) events_.Modify(listener_.fd(), 0);
  paused_until_ = now + kPause;
}

void Strangers::Take(Socket socket, Clock::time_point now) {
  const int fd = socket.fd();
  const auto at = static_cast<size_t>(fd);
  if (at >= strangers_.size()) strangers_.resize(at + 1);
  strangers_[at] = std::make_unique<Stranger>();
  Stranger& stranger = *strangers_[at];
  stranger.socket = std::move(socket);
  stranger.since = now;
  stranger.place = by_age_.insert(by_age_.end(), fd);
  events_.Add(fd, EPOLLIN);
  Challenge::Write(NewNonce(), stranger.challenge);
  const iovec piece = {stranger.challenge, sizeof(stranger.challenge)};
  if (stranger.socket.Write({&piece, 1}) != static_cast<ssize_t>(sizeof(stranger.challenge))) Remove(fd);  // it is gone
}

void Strangers::Read(Stranger& stranger) {
  const int fd = stranger.socket.fd();
  const iovec piece = {stranger.hello_bytes + stranger.have, sizeof(stranger.hello_bytes) - stranger.have};
  const ssize_t got = stranger.socket.Read({&piece, 1});
  if (got == -EAGAIN) return;
  if (got > 0) stranger.have += static_cast<size_t>(got);
  if (got > 0 && stranger.have < sizeof(stranger.hello_bytes)) return;
  const std::unique_ptr<Stranger> taken = Remove(fd);
  // A peer whose connection to us gave way to ours before it greeted; or one who only tried the port.
  if (got <= 0 && taken->have == 0) return;
  const auto hello = got > 0 ? Hello::Read(secret_, taken->challenge, taken->hello_bytes) : std::nullopt;
  if (!hello || hello->from < 0 || hello->from >= size_ || hello->from == rank_) {
    LogWarning("dropped a connection from " + taken->socket.PeerName() +
               ": it does not come from a process of this job");
    return;
  }
  // Of this job, but for another rank: an address that is not only this host's. It tries the next.
  if (hello->to != rank_) return;
  taken->hello = *hello;
  admit_(std::move(*taken));
}

std::unique_ptr<Strangers::Stranger> Strangers::Remove(int fd) {
  std::unique_ptr<Stranger> stranger = std::move(strangers_[static_cast<size_t>(fd)]);
  events_.Remove(fd);
  by_age_.erase(stranger->place);
  return stranger;
}

bool Strangers::GiveWay(Clock::time_point now) {
  while (!by_age_.empty()) {
    const int oldest = by_age_.front();
    if (now - Find(oldest)->since < kShortest) return false;
    Read(*Find(oldest));  // it may have spoken meanwhile
    if (by_age_.empty() || by_age_.front() != oldest) continue;
    Remove(oldest);
    return true;
  }
  return false;
}

void Strangers::OnTime(Clock::time_point now) {
  if (!paused_until_ || now < *paused_until_) return;
  paused_until_.reset();
  events_.Modify(listener_.fd(), EPOLLIN);
}

}  // namespace weft::mpi
