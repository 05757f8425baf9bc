#include "mpi_hybrid/p2p/tcp/connection.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace weft::mpi {
namespace {

constexpr size_t kPieces = 64;  // of one gathering write or scattering read
// System calls for one connection before others have their turn: a peer that is as fast as we are would keep us for as
// long as there is something.
constexpr int kReadsPerTurn = 16, kWritesPerTurn = 16;
constexpr uint64_t kLongBody = 128 * 1024, kMostLowWater = 512 * 1024;

}  // namespace

void Connection::OnReady(uint32_t events) {
  bool moved = false;
  if (events & EPOLLOUT) moved |= WriteQueued();
  if (!lost_ && (events & ~static_cast<uint32_t>(EPOLLOUT))) moved |= ReadReady();
  Settle(moved);
}

bool Connection::Poll() {
  bool moved = full_ && WriteQueued();
  if (!lost_) moved |= ReadReady();
  return Settle(moved);
}

bool Connection::Write() { return !full_ && !waits_turn_ && Settle(WriteQueued()); }

bool Connection::WriteOn() {
  waits_turn_ = false;
  return Write();
}

// The last of each function above: after it this may not be there any more.
bool Connection::Settle(bool moved) {
  if (lost_) owner_.OnLost(*this);
  return moved;
}

// A connection that was lost has moved, too.
bool Connection::WriteQueued() {
  bool moved = false;
  iovec pieces[kPieces];
  if (!cork_.empty() && !WriteHeld(&moved)) return moved;
  for (int turn = 0; link_.has_output() && !output_ended_; ++turn) {
    if (turn == kWritesPerTurn) {
      if (!std::exchange(waits_turn_, true)) owner_.OnTurnOver(*this);
      return moved;
    }
    const size_t count = link_.PrepareWrite(pieces);
    const ssize_t written = socket_.Write({pieces, count});
    if (written == -EAGAIN) {
      OnFull();
      return moved;
    }
    moved = true;
    if (written < 0) {
      OnWriteError(static_cast<int>(-written));
      return moved;
    }
    link_.Written(static_cast<size_t>(written));
  }
  if (std::exchange(full_, false)) registration_.SetEvents(EPOLLIN);
  return moved;
}

// False: something is still held, or the connection is lost.
bool Connection::WriteHeld(bool* moved) {
  while (!cork_.empty()) {
    const ssize_t written = cork_.Write({});
    if (written == -EAGAIN) {
      OnFull();
      return false;
    }
    *moved = true;
    if (written < 0) {
      OnWriteError(static_cast<int>(-written));
      return false;
    }
  }
  return true;
}

void Connection::OnFull() {
  if (!std::exchange(full_, true)) registration_.SetEvents(EPOLLIN | EPOLLOUT);
}

// What the peer sent before it went is still there to be read.
void Connection::OnWriteError(int error) {
  while (!lost_ && ReadReady()) {
  }
  if (!lost_) Lose(error, "write");
}

bool Connection::ReadReady() {
  iovec pieces[kPieces];
  bool moved = false;
  for (int turn = 0; turn < kReadsPerTurn; ++turn) {
    const size_t count = link_.PrepareRead(pieces, staging_);
    size_t asked = 0;
    for (size_t i = 0; i < count; ++i) asked += pieces[i].iov_len;
    const ssize_t got = socket_.Read({pieces, count});
    if (got == -EAGAIN) return moved;
    if (got <= 0) {
      Lose(static_cast<int>(-got), "read");
      return true;
    }
    moved = true;
    if (!link_.ReadDone(static_cast<size_t>(got), staging_)) {
      LogWarning(link_.Describe() + " sent an invalid message; the connection is closed");
      Lose(EPROTO, "read");
      return true;
    }
    if (link_.body_to_come() < low_water_) SetLowWater(1);
    if (static_cast<size_t>(got) < asked) return true;
  }
  return true;
}

void Connection::Lose(int error, const char* what) {
  if (TraceEnabled()) {
    Trace(Format("mpi: connection to %s ended (%s: %s)", link_.Describe().c_str(), what,
                 error == 0 ? "end of stream" : std::strerror(error)));
  }
  lost_ = true;
}

void Connection::EndOutput() {
  if (!cork_.empty()) (void)cork_.Write({});  // as far as the socket takes it
  output_ended_ = true;
  socket_.ShutdownWrite();
}

void Connection::LookForPeer(EventLoop::Clock::time_point now) {
  if (peer_.Look(socket_.get(), now)) socket_.Shutdown();
}

void Connection::RaiseLowWater() {
  const uint64_t to_come = link_.body_to_come();
  SetLowWater(to_come < kLongBody ? 1 : static_cast<size_t>(std::min<uint64_t>(to_come, kMostLowWater)));
}

void Connection::SetLowWater(size_t bytes) {
  if (low_water_ == bytes) return;
  low_water_ = bytes;
  socket_.SetLowWater(bytes);
}

}  // namespace weft::mpi
