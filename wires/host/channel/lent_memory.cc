#include "wires/host/channel/lent_memory.h"

#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "base/log.h"
#include "wires/host/meeting/peer_process.h"

namespace weft::host {
namespace {

// A copy of 64 KiB takes a hundredth of that, unless the reader has lost its processor, or was stopped.
constexpr std::chrono::milliseconds kReading{1};
// What was referenced when the connection was closed stays so long for the peer to read.
constexpr std::chrono::seconds kLinger{10};
// A peer that is not stopped is through with a Write long before.
constexpr int kYields = 200;
constexpr std::chrono::milliseconds kLook{1}, kTellAfter{200};

std::atomic<size_t> g_kept{0};

bool Reserve(size_t bytes) {
  if (g_kept.fetch_add(bytes, std::memory_order_relaxed) + bytes <= LentMemory::kMostKept) return true;
  g_kept.fetch_sub(bytes, std::memory_order_relaxed);
  return false;
}

bool Overlaps(const iovec& piece, const void* begin, size_t length) {
  const auto first = reinterpret_cast<uintptr_t>(piece.iov_base), from = reinterpret_cast<uintptr_t>(begin);
  return first < from ? from - first < piece.iov_len : first - from < length;
}

bool Names(const References::One& one, const void* begin, size_t length) {
  const std::span<const iovec> pieces(one.payload.data(), one.pieces);
  return std::any_of(pieces.begin(), pieces.end(), [&](const iovec& piece) { return Overlaps(piece, begin, length); });
}

}  // namespace

LentMemory::LentMemory(std::shared_ptr<Met> met, bool initiator)
    : met_(std::move(met)), initiator_(initiator), granter_(initiator ? met_->memory->control().by_initiator : met_->memory->control().by_responder) {}

LentMemory::~LentMemory() { Expire(); }

// The peer keeps its end as long as it has the channel.
bool LentMemory::PeerLeft() const {
  if (!met_->bell) return false;
  pollfd look{.fd = met_->bell.get(), .events = 0, .revents = 0};
  return poll(&look, 1, 0) == 1 && (look.revents & POLLHUP) != 0;
}

size_t LentMemory::kept() { return g_kept.load(std::memory_order_relaxed); }

bool LentMemory::CopyPayload(References::One& one, llp::Channel::Copy copy) {
  auto own = std::make_unique_for_overwrite<uint8_t[]>(one.length);
  uint8_t* to = own.get();
  for (const iovec& piece : std::span(one.payload).first(one.pieces)) {
    if (!copy(to, static_cast<const uint8_t*>(piece.iov_base), piece.iov_len)) return false;
    to += piece.iov_len;
  }
  one.taken_over = std::move(own);
  return true;
}

bool LentMemory::AwaitReader(Producer& producer, uint64_t line) const {
  const auto until = std::chrono::steady_clock::now() + kReading;
  while (producer.Refresh() && producer.passed() <= line) {
    if (std::chrono::steady_clock::now() > until) return false;
    sched_yield();
  }
  return producer.passed() > line;
}

int LentMemory::TakeBack(Producer& producer, const void* begin, size_t length, llp::Channel::Copy copy, bool* replaced) {
  granter_.Shut(begin, length);
  int error = 0;
  for (size_t i = 0; i < references_.size(); ++i) {
    References::One& one = references_.at(i);
    if (one.line < producer.passed() || one.taken_over != nullptr || !Names(one, begin, length)) continue;
    switch (producer.ClaimBack(one.line)) {
      case Claim::kNobody:
        if (CopyPayload(one, copy)) {
          producer.Replace(one.line, one.taken_over.get(), one.length);
        } else {
          producer.Revoke(one.line);
          error = EFAULT;
        }
        *replaced = true;
        break;
      case Claim::kCopied:  // from which memory that both share is read
        break;
      case Claim::kConsumer:
        if (AwaitReader(producer, one.line)) break;
        [[fallthrough]];
      default:
        producer.Revoke(one.line);
        if (error == 0) error = ETIMEDOUT;
    }
  }
  return error;
}

void LentMemory::RevokeAll(Producer& producer) {
  granter_.ShutAll();
  if (references_.empty()) return;
  static_cast<void>(producer.Refresh());
  // The peer reads them in order: from the newest to the oldest, so that it begins with none behind one that it does not get.
  for (size_t i = references_.size(); i-- > 0;) {
    const uint64_t line = references_.at(i).line;
    if (line < producer.passed()) break;
    if (producer.ClaimBack(line) == Claim::kConsumer && AwaitReader(producer, line)) break;
    producer.Revoke(line);
  }
  while (!references_.empty()) references_.DropOldest();
}

void LentMemory::Keep(const Producer& producer, transport::Network& network, llp::Channel::Copy copy) {
  granter_.ShutAll();
  producer_.emplace(producer);
  if (!producer_->Refresh()) return Expire();
  while (!references_.empty() && references_.oldest().line < producer_->passed()) references_.DropOldest();
  for (size_t i = 0; i < references_.size(); ++i) {
    References::One& one = references_.at(i);
    bool replaced = false;
    if (!Reserve(one.length)) return Expire();
    kept_ += one.length;
    for (const iovec& piece : std::span(one.payload).first(one.pieces)) {
      if (TakeBack(*producer_, piece.iov_base, piece.iov_len, copy, &replaced) != 0) return Expire();
    }
  }
  if (references_.empty()) return Expire();
  network.RunAt(network.Now() + kLinger, [self = shared_from_this()] { self->Expire(); });
}

void LentMemory::Expire() {
  if (producer_) RevokeAll(*producer_);
  producer_.reset();
  g_kept.fetch_sub(std::exchange(kept_, 0), std::memory_order_relaxed);
}

void LentMemory::Await(const void* begin, size_t length) {
  for (int round = 0; round < kYields; ++round) {
    if (Settled(begin, length)) [[likely]] return;
    sched_yield();
  }
  ControlPage& control = met_->memory->control();
  const PeerProcess peer(met_->peer, initiator_ ? control.of_responder : control.of_initiator);
  const auto since = std::chrono::steady_clock::now();
  bool told = false;
  while (!Settled(begin, length) && !peer.IsGone() && !PeerLeft()) {
    if (!told && std::chrono::steady_clock::now() - since > kTellAfter) {
      told = true;
      LogWarning(Format("process %d is writing into memory that the program takes back, and does not finish (was it stopped?): waiting for it as "
                        "long as it lives",
                        static_cast<int>(met_->peer)));
    }
    std::this_thread::sleep_for(kLook);
  }
}

}  // namespace weft::host
