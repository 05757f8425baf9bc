#include "mpi_hybrid/p2p/tcp/attempt.h"

#include <errno.h>

#include <span>
#include <utility>

#include "base/log.h"

namespace weft::mpi {

void Attempt::OnReady(uint32_t /*events*/) {
  if (state_ == State::kConnecting) {
    OnConnecting();
  } else {
    OnGreeting();
  }
}

void Attempt::OnConnecting() {
  const int error = socket_.ConnectError();
  if (error != 0) return Fail(error, error == ECONNRESET || error == EPIPE ? Dial::End::kClosed : Dial::End::kNobody);
  const iovec piece = {challenge_ + have_, sizeof(challenge_) - have_};
  const ssize_t got = socket_.Read({&piece, 1});
  if (got == -EAGAIN) return;
  give_up_at_.reset();
  if (got <= 0) return Fail(static_cast<int>(-got), Dial::End::kClosed);
  have_ += static_cast<size_t>(got);
  if (!Challenge::BeginsOne(std::span(challenge_).first(have_))) return Fail(EPROTO, Dial::End::kClosed);
  if (have_ < sizeof(challenge_)) return;
  // Another process: the address is not only its host's, or its port is another's since it died.
  if (Challenge::Read(challenge_) != about_.to) return Fail(ESRCH, Dial::End::kAnother);
  about_.Write(secret_, challenge_, hello_);
  const iovec hello = {hello_, sizeof(hello_)};  // the first bytes on it: there is room
  const ssize_t written = socket_.Write({&hello, 1});
  if (written != static_cast<ssize_t>(sizeof(hello_)))
    return Fail(written < 0 ? static_cast<int>(-written) : EPROTO, Dial::End::kClosed);
  have_ = 0;
  state_ = State::kGreeting;
}

void Attempt::OnGreeting() {
  const iovec piece = {answer_ + have_, sizeof(answer_) - have_};
  const ssize_t got = socket_.Read({&piece, 1});
  if (got == -EAGAIN) return;
  if (got <= 0) return Fail(static_cast<int>(-got), Dial::End::kClosed);
  have_ += static_cast<size_t>(got);
  if (have_ < sizeof(answer_)) return;
  const auto answer = Answer::Read(secret_, challenge_, hello_, answer_);
  if (!answer) {
    LogWarning("closed a connection to " + socket_.PeerName() + ": the process that listens there does not belong to this job");
    return Fail(EPROTO, Dial::End::kClosed);
  }
  const bool welcome = answer->kind == Answer::Kind::kWelcome;
  owner_.OnEnd(*this, {.kind = welcome ? Result::Kind::kWelcome : Result::Kind::kBusy, .window = answer->window});
}

void Attempt::GiveUp() { Fail(ETIMEDOUT, socket_.IsConnected() ? Dial::End::kSilent : Dial::End::kNobody); }

Socket Attempt::TakeSocket() {
  registration_.End();
  return std::move(socket_);
}

}  // namespace weft::mpi
