#include "mpi_hybrid/p2p/tcp/strangers.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <iterator>
#include <utility>

#include "base/file_limit.h"
#include "base/log.h"

namespace weft::mpi {
namespace {

constexpr int kAcceptsPerTurn = 64;  // before connections that are there have theirs
constexpr auto kTellOfStrangersAgain = std::chrono::seconds(10);

}  // namespace

void Strangers::Listen(Socket listener) {
  listener_ = std::move(listener);
  Reserve();
  registration_ = {loop_, listener_.get(), EPOLLIN, *this, EventLoop::Urgency::kPatient};
}

void Strangers::Close() {
  registration_.End();
  listener_.Close();
  reserve_.Close();
  strangers_.clear();
  paused_until_.reset();
}

void Strangers::Accept() {
  const auto now = Clock::now();
  for (int turn = 0; turn < kAcceptsPerTurn; ++turn) {
    if (strangers_.size() >= kMost && !GiveWay(now)) return Pause(now);
    Socket socket = listener_.Accept();
    if (socket) {
      starved_since_.reset();
      Take(std::move(socket), now);
      Reserve();
      continue;
    }
    const int error = errno;
    if (error == EAGAIN) {  // nobody waits
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
  if (!told_ || now - *told_ >= kTellOfStrangersAgain) {
    LogWarning("cannot accept a connection of another rank: " + DescribeShortage(error) + "; it waits");
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
  if (!paused_until_) registration_.SetEvents(0);
  paused_until_ = now + kPause;
}

Strangers::Stranger::Stranger(Strangers& whose, Socket socket, Clock::time_point now)
    : owner(whose),
      visitor{.socket = std::move(socket)},
      since(now),
      registration(whose.loop_, visitor.socket.get(), EPOLLIN, *this) {}

void Strangers::Take(Socket socket, Clock::time_point now) {
  Stranger& stranger = strangers_.emplace_back(*this, std::move(socket), now);
  stranger.place = std::prev(strangers_.end());
  Challenge::Write(NewNonce(), processes_.own_name(), stranger.visitor.challenge);
  const iovec piece = {stranger.visitor.challenge, sizeof(stranger.visitor.challenge)};
  if (stranger.visitor.socket.Write({&piece, 1}) != static_cast<ssize_t>(Challenge::kLength))
    Remove(stranger);  // it is gone
}

void Strangers::Read(Stranger& stranger) {
  const iovec piece = {stranger.visitor.hello_bytes + stranger.have, Hello::kLength - stranger.have};
  const ssize_t got = stranger.visitor.socket.Read({&piece, 1});
  if (got == -EAGAIN) return;
  if (got > 0) stranger.have += static_cast<size_t>(got);
  if (got > 0 && stranger.have < Hello::kLength) return;
  const bool silent = stranger.have == 0;
  Visitor visitor = Remove(stranger);
  // A peer whose connection to us gave way to ours before it greeted; or one who only tried the port.
  if (got <= 0 && silent) return;
  const auto hello = got > 0 ? Hello::Read(visitor.hello_bytes) : std::nullopt;
  const ProcessName self = processes_.own_name();
  if (hello && hello->from != self) visitor.bond = processes_.BondToEnter(hello->bond, hello->from);
  if (!visitor.bond || !Hello::IsProven(visitor.bond->secret, visitor.challenge, visitor.hello_bytes)) {
    LogWarning("dropped a connection from " + visitor.socket.PeerName() +
               ": it is not from a process of this job");
    return;
  }
  // It means another process, in spite of what the challenge says.
  if (hello->to != self) return;
  visitor.window = hello->window;
  visitor.process = processes_.Enter(*visitor.bond, hello->from);
  admit_(std::move(visitor));
}

Visitor Strangers::Remove(Stranger& stranger) {
  stranger.registration.End();
  Visitor visitor = std::move(stranger.visitor);
  strangers_.erase(stranger.place);
  return visitor;
}

bool Strangers::GiveWay(Clock::time_point now) {
  while (!strangers_.empty()) {
    Stranger& oldest = strangers_.front();
    if (now - oldest.since < kShortest) return false;
    const size_t count = strangers_.size();
    Read(oldest);  // it may have spoken meanwhile
    if (strangers_.size() < count) continue;
    Remove(oldest);
    return true;
  }
  return false;
}

void Strangers::OnTime(Clock::time_point now) {
  if (!paused_until_ || now < *paused_until_) return;
  paused_until_.reset();
  registration_.SetEvents(EPOLLIN);
}

}  // namespace weft::mpi
