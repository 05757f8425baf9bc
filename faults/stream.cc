#include "faults/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace weft::faults {
namespace {

using transport::ByteStream;
using transport::Duration;
using transport::IoResult;
using transport::Time;

// What a delayed or held connection takes before writes would block: as a long fat line for delays, as a socket for the rest.
constexpr size_t kLongLine = 64 << 20;
constexpr size_t kSocketBuffer = 256 << 10;
// A piece that a limited rate lets out at once.
constexpr size_t kBurst = 4096;
// How long a blackholed connection outlives its queue pair, in silence.
constexpr std::chrono::seconds kSilence{60};

size_t Total(std::span<const iovec> pieces) {
  size_t total = 0;
  for (const iovec& piece : pieces) total += piece.iov_len;
  return total;
}

// The first `bytes` of `pieces`.
std::vector<iovec> Head(std::span<const iovec> pieces, uint64_t bytes) {
  std::vector<iovec> head;
  for (const iovec& piece : pieces) {
    if (bytes == 0) break;
    head.push_back({piece.iov_base, static_cast<size_t>(std::min<uint64_t>(piece.iov_len, bytes))});
    bytes -= head.back().iov_len;
  }
  return head;
}

}  // namespace

FaultyStream::FaultyStream(std::unique_ptr<ByteStream> stream, ConnectionInfo info, StartUp start_up, transport::Network& network,
                           std::function<void()> wake)
    : stream_(std::move(stream)),
      start_up_(start_up),
      network_(network),
      faults_(std::move(info), stream_->PeerAddress(), network, std::move(wake)) {
  Advance();
}

FaultyStream::~FaultyStream() = default;

void FaultyStream::Reselect() {
  faults_.Reselect();
  Advance();
}

void FaultyStream::Update() {
  if (!starting_up() && faults_.Update()) CarryOutEnd();
}

void FaultyStream::CarryOutEnd() {
  queue_.clear();
  queued_ = 0;
  socket_full_ = false;
  // A reset takes what the peer has not read yet with it, a cut does not. A peer that is beyond a blackhole hears nothing.
  if (faults_.end() == End::kCut) stream_->ShutdownWrite();
  if (faults_.end() == End::kReset) stream_->Abort();
}

IoResult FaultyStream::EndResult(bool reading) const {
  using Result = IoResult::Kind;
  const End end = faults_.end();
  if (end == End::kCut) return reading ? IoResult{Result::kEndOfStream} : IoResult{Result::kFailed, 0, EPIPE};
  return {Result::kFailed, 0, end == End::kReset ? ECONNRESET : ETIMEDOUT};
}

void FaultyStream::Passed(size_t bytes) {
  faults_.Passed(bytes);
  Update();
}

void FaultyStream::Advance() {
  if (stream_ == nullptr || over()) return;
  Update();
  Pump(network_.Now());
}

void FaultyStream::Pump(Time now) {
  socket_full_ = false;
  while (!queue_.empty() && !faults_.shut() && !over()) {
    Chunk& chunk = queue_.front();
    if (chunk.due > now) return faults_.WakeAt(chunk.due);
    uint64_t most = std::min<uint64_t>(chunk.bytes.size(), faults_.UntilByteFault());
    if (faults_.bits_per_second() != 0) {
      if (may_send_from_ > now) return faults_.WakeAt(may_send_from_);
      most = std::min<uint64_t>(most, kBurst);
    }
    const iovec piece{chunk.bytes.data(), static_cast<size_t>(most)};
    const IoResult result = stream_->Write({&piece, 1});
    if (result.kind == IoResult::Kind::kWouldBlock) {
      socket_full_ = true;
      return;
    }
    if (result.kind != IoResult::Kind::kDone) {  // the owner finds out when it reads
      queue_.clear();
      queued_ = 0;
      return;
    }
    if (faults_.bits_per_second() != 0) {
      const double seconds = static_cast<double>(result.bytes) * 8 / static_cast<double>(faults_.bits_per_second());
      may_send_from_ = std::max(may_send_from_, now - std::chrono::milliseconds(1)) + Duration(static_cast<int64_t>(seconds * 1e9));
    }
    queued_ -= result.bytes;
    if (result.bytes == chunk.bytes.size()) {
      queue_.pop_front();
    } else {
      chunk.bytes.erase(chunk.bytes.begin(), chunk.bytes.begin() + static_cast<ptrdiff_t>(result.bytes));
    }
    Passed(result.bytes);
  }
  if (queue_.empty() && fin_asked_ && !fin_sent_ && !faults_.shut() && !over()) {
    fin_sent_ = true;
    stream_->ShutdownWrite();
  }
}

IoResult FaultyStream::Read(std::span<const iovec> into) {
  Advance();
  if (over()) return EndResult(true);
  if (faults_.shut()) return {};
  const uint64_t most = faults_.UntilByteFault();
  IoResult result;
  if (most >= Total(into)) {
    result = stream_->Read(into);
  } else {
    result = stream_->Read(Head(into, most));
  }
  if (result.kind == IoResult::Kind::kDone) Passed(result.bytes);
  return result;
}

IoResult FaultyStream::Write(std::span<const iovec> from) {
  const size_t wanted = Total(from);
  if (std::exchange(start_up_.first_write, false)) start_up_.bytes = wanted;
  if (start_up_.bytes != 0) {
    // The MPA Reply, or the RTR: goes out as it is, unless nothing does.
    if (faults_.shut()) return {};
    const IoResult result = stream_->Write(Head(from, start_up_.bytes));
    if (result.kind == IoResult::Kind::kDone) start_up_.bytes -= result.bytes;
    if (start_up_.bytes == 0) faults_.WakeAt(network_.Now());
    return result;
  }
  Advance();
  if (over()) return EndResult(false);
  const Time now = network_.Now();
  if (wanted == 0) return WriteThrough(from);
  const Duration delay = faults_.Delay();
  if (queue_.empty() && !faults_.shut() && faults_.bits_per_second() == 0 && delay.count() == 0) return WriteThrough(from);
  return Enqueue(from, now, delay);
}

IoResult FaultyStream::WriteThrough(std::span<const iovec> from) {
  const uint64_t most = faults_.UntilByteFault();
  const size_t wanted = Total(from);
  if (most < wanted) {
    const IoResult result = stream_->Write(Head(from, most));
    if (result.kind == IoResult::Kind::kDone) Passed(result.bytes);
    return result;
  }
  const IoResult result = faults_.CorruptionIsDue() ? WriteCorrupted(from, wanted) : stream_->Write(from);
  if (result.kind == IoResult::Kind::kDone) Passed(result.bytes);
  return result;
}

// What the owner writes ends with a whole frame, and a frame with its CRC (RFC 5044 section 4.1). So its last byte can change without
// that a length, by which the peer finds frames, is touched; and the CRC of a frame tells of any bit in it.
IoResult FaultyStream::WriteCorrupted(std::span<const iovec> from, size_t bytes) {
  std::vector<iovec> pieces = Head(from, bytes - 1);
  const iovec& end = *std::find_if(from.rbegin(), from.rend(), [](const iovec& piece) { return piece.iov_len != 0; });
  uint8_t last = static_cast<const uint8_t*>(end.iov_base)[end.iov_len - 1];
  if (!faults_.StrikeCorruption(Format("a bit inverted after %llu bytes", static_cast<unsigned long long>(faults_.passed() + bytes)))) {
    return stream_->Write(from);
  }
  last ^= 1;
  pieces.push_back({&last, 1});
  const IoResult result = stream_->Write(pieces);
  if (result.kind == IoResult::Kind::kDone && result.bytes == bytes) return result;
  // The socket took less; the byte follows, inverted, by way of the queue, so that it happens all the same.
  if (result.kind == IoResult::Kind::kFailed) return result;
  const size_t written = result.kind == IoResult::Kind::kDone ? result.bytes : 0;
  std::vector<uint8_t> rest;
  size_t skip = written;
  for (const iovec& piece : pieces) {
    const size_t skipped = std::min(skip, piece.iov_len);
    skip -= skipped;
    const auto* data = static_cast<const uint8_t*>(piece.iov_base);
    rest.insert(rest.end(), data + skipped, data + piece.iov_len);
  }
  queued_ += rest.size();
  queue_.push_back({network_.Now(), std::move(rest)});
  socket_full_ = true;
  return {IoResult::Kind::kDone, bytes};
}

IoResult FaultyStream::Enqueue(std::span<const iovec> from, Time now, Duration delay) {
  const size_t limit = delay.count() != 0 ? kLongLine : kSocketBuffer;
  if (queued_ >= limit) return {};
  Chunk chunk{.due = now + std::max(delay, Duration(0)), .bytes = {}};
  if (!queue_.empty()) chunk.due = std::max(chunk.due, queue_.back().due);
  size_t room = limit - queued_;
  for (const iovec& piece : from) {
    const size_t taken = std::min(piece.iov_len, room);
    const auto* data = static_cast<const uint8_t*>(piece.iov_base);
    chunk.bytes.insert(chunk.bytes.end(), data, data + taken);
    room -= taken;
  }
  const size_t bytes = chunk.bytes.size();
  // A whole write ends with a CRC: see WriteCorrupted.
  if (bytes == Total(from) && faults_.StrikeCorruption("a bit inverted")) {
    chunk.bytes.back() ^= 1;
  }
  queued_ += bytes;
  queue_.push_back(std::move(chunk));
  Pump(now);
  return {IoResult::Kind::kDone, bytes};
}

void FaultyStream::ShutdownWrite() {
  fin_asked_ = true;
  Advance();
}

void FaultyStream::Abort() {
  if (faults_.shut() && !over()) faults_.SetEnd(End::kGivenUp);
  std::vector<uint8_t> unused;
  if (faults_.end() == End::kGivenUp) {
    Release(unused);
  } else if (stream_ != nullptr) {
    stream_->Abort();
  }
}

std::unique_ptr<ByteStream> FaultyStream::Release(std::vector<uint8_t>& rest) {
  std::unique_ptr<ByteStream> stream = std::move(stream_);
  if (stream == nullptr) return nullptr;
  if (faults_.shut() || faults_.end() == End::kGivenUp) {
    // Closing would tell the peer.
    network_.RunAt(network_.Now() + kSilence, [held = std::shared_ptr<ByteStream>(std::move(stream))] {});
    return nullptr;
  }
  if (faults_.end() == End::kReset) return nullptr;
  if (faults_.end() == End::kCut) {
    rest.clear();
    return stream;
  }
  std::vector<uint8_t> all;
  for (const Chunk& chunk : queue_) all.insert(all.end(), chunk.bytes.begin(), chunk.bytes.end());
  all.insert(all.end(), rest.begin(), rest.end());
  rest = std::move(all);
  queue_.clear();
  return stream;
}

}  // namespace weft::faults
