#include "mpi_hybrid/p2p/tcp/cork.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <system_error>

namespace weft::mpi {
namespace {

constexpr int kIdleTicks = 10;      // without anything held, until the thread sleeps without a time
constexpr int kMostPatience = 200;  // ticks

}  // namespace

// --- the thread ---

Corks::~Corks() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  wanted_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool Corks::Begin() {
  if (thread_.joinable()) return true;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    thread_ = std::thread([this] { Run(); });
  } catch (const std::system_error&) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void Corks::Add(Cork& cork) {
  cork.listed_ = true;
  listed_.push_back(&cork);
  if (asleep_) wanted_.notify_one();
}

void Corks::Run() {
  prctl(PR_SET_TIMERSLACK, 1000UL);  // nanoseconds; by itself a sleep takes 50 us more than it was asked for
  std::unique_lock lock(mutex_);
  std::chrono::microseconds pause = kTick;  // while nothing is held
  Seen seen = Seen::kNothing;
  for (int idle = 0; !ends_;) {
    idle = listed_.empty() ? idle + 1 : 0;
    if (idle > kIdleTicks) {
      asleep_ = true;
      wanted_.wait(lock, [this] { return ends_ || !listed_.empty(); });
      asleep_ = false;
      pause = kTick;
      continue;
    }
    lock.unlock();
    std::this_thread::sleep_for(seen == Seen::kNothing ? pause : kTick);
    lock.lock();
    seen = Tick();
    pause = seen == Seen::kLetGo ? kTick : std::min(2 * pause, kLongest);
  }
}

Corks::Seen Corks::Tick() {
  Seen seen = Seen::kNothing;
  std::erase_if(listed_, [&](Cork* cork) {
    if (cork->held() != 0 && --cork->ticks_ < 0) {
      cork->LetGo();
      seen = Seen::kLetGo;
    }
    cork->listed_ = cork->held() != 0;
    if (cork->listed_) seen = std::max(seen, Seen::kHeld);
    return !cork->listed_;
  });
  return seen;
}

// --- one of them ---

Cork::~Cork() {
  const std::lock_guard lock(corks_.mutex_);
  if (listed_) std::erase(corks_.listed_, this);
}

bool Cork::Hold(std::span<const iovec> pieces, size_t total) {
  size_t there = 0;
  for (const iovec& piece : pieces) there += piece.iov_len;
  if (there != total) return false;
  const std::lock_guard lock(corks_.mutex_);
  size_t at = held();
  if (total > kRoom - at || !corks_.Begin()) return false;
  if (!bytes_) bytes_.reset(new uint8_t[kRoom]);
  if (at == 0) {
    ticks_ = 1;
    patience_ = 1;
    if (!listed_) corks_.Add(*this);
  }
  for (const iovec& piece : pieces) {
    std::memcpy(bytes_.get() + at, piece.iov_base, piece.iov_len);
    at += piece.iov_len;
  }
  held_.store(at, std::memory_order_release);
  return true;
}

ssize_t Cork::Write(std::span<const iovec> pieces) {
  const std::lock_guard lock(corks_.mutex_);
  const size_t before = held();
  std::array<iovec, 1 + kMostPieces> all;
  all[0] = {bytes_.get(), before};
  const auto end = std::copy(pieces.begin(), pieces.end(), all.begin() + 1);
  const std::span<const iovec> what(all.begin() + (before == 0 ? 1 : 0), end);
  if (what.empty()) return 0;
  const ssize_t written = socket_.Write(what);
  if (written < 0) return written;
  const size_t of_held = std::min(before, static_cast<size_t>(written));
  DropFront(of_held);
  return written - static_cast<ssize_t>(of_held);
}

// What goes wrong shows again when this process writes.
void Cork::LetGo() {
  const iovec piece = {bytes_.get(), held()};
  const ssize_t written = socket_.Write({&piece, 1});
  if (written > 0) DropFront(static_cast<size_t>(written));
  patience_ = written > 0 ? 1 : std::min(2 * patience_, kMostPatience);
  ticks_ = patience_;
}

void Cork::DropFront(size_t bytes) {
  const size_t left = held() - bytes;
  if (left != 0 && bytes != 0) std::memmove(bytes_.get(), bytes_.get() + bytes, left);
  held_.store(left, std::memory_order_release);
}

}  // namespace weft::mpi
