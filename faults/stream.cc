#include "faults/stream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace weft::faults {
namespace {

using transport::ByteStream;
using transport::IoResult;
using transport::Time;

// What a delayed or held connection takes before writes would block: as a long fat line for delays, as a socket for the rest.
constexpr size_t kLongLine = 64 << 20;
constexpr size_t kSocketBuffer = 256 << 10;
// A piece that a limited rate lets out at once.
constexpr size_t kBurst = 4096;
// How long a blackholed connection outlives its queue pair, in silence.
constexpr std::chrono::seconds kSilence{60};

constexpr Kind kStreamKinds[] = {Kind::kCut, Kind::kReset, Kind::kBlackhole, Kind::kDelay, Kind::kBandwidth, Kind::kCorrupt};

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

bool ConcernsStream(const ConnectionInfo& info, const transport::SocketAddress& peer) {
  const Place place{.qp = info.qp, .peer = &peer, .device = info.device.c_str()};
  if (PortIsDown(info.device.c_str())) return true;
  return std::any_of(std::begin(kStreamKinds), std::end(kStreamKinds),
                     [&](Kind kind) { return Injector::Process().Has(kind, place); });
}

bool WantsCrc(const ConnectionInfo& info, const transport::SocketAddress& peer) {
  return Injector::Process().Has(Kind::kCorrupt, {.qp = info.qp, .peer = &peer, .device = info.device.c_str()});
}

FaultyStream::FaultyStream(std::unique_ptr<ByteStream> stream, ConnectionInfo info, transport::Network& network,
                           std::function<void()> wake)
    : stream_(std::move(stream)),
      info_(std::move(info)),
      network_(network),
      waker_(std::make_shared<Waker>()),
      established_(network.Now()) {
  waker_->wake = std::move(wake);
  Reselect();
}

FaultyStream::~FaultyStream() {
  std::lock_guard lock(waker_->mutex);
  waker_->wake = nullptr;
}

void FaultyStream::Reselect() {
  armed_.clear();  // a plan is replaced as a whole
  const transport::SocketAddress peer = stream_->PeerAddress();
  const Place place{.qp = info_.qp, .peer = &peer, .device = info_.device.c_str()};
  for (const Kind kind : kStreamKinds) Select(kind, place);
  Advance();
}

void FaultyStream::Select(Kind kind, const Place& place) {
  for (const auto& active : Injector::Process().Choose(kind, place)) {
    if (kind == Kind::kCorrupt && !info_.crc) {
      LogWarning(Where("has no CRC, which was agreed before the fault was set: nothing is corrupted"));
      continue;
    }
    armed_.push_back({.active = active, .from = network_.Now() + active->fault.after});
  }
}

std::string FaultyStream::Where(const std::string& what) const {
  return Format("qp 0x%x, peer %s: ", info_.qp, stream_->PeerAddress().ToString().c_str()) + what;
}

bool FaultyStream::IsDue(const Armed& armed, Time now) const {
  return now >= armed.from && passed_ >= Of(armed).after_bytes;
}

bool FaultyStream::Strike(Armed& armed, Time now) {
  if (armed.struck) return true;
  const Fault& fault = Of(armed);
  std::string what;
  switch (fault.kind) {
    case Kind::kCut:
      what = "cut";
      break;
    case Kind::kReset:
      what = "reset";
      break;
    case Kind::kBlackhole:
      what = "nothing passes any more";
      break;
    case Kind::kDelay:
      what = "delayed";
      break;
    case Kind::kBandwidth:
      what = "limited";
      break;
    default:
      what = "";
      break;
  }
  what += Format(" after %llu bytes, %lld ms", static_cast<unsigned long long>(passed_),
                 static_cast<long long>((now - established_) / std::chrono::milliseconds(1)));
  if (!Injector::Process().Strike(*armed.active, Where(what))) {
    armed.over = true;
    return false;
  }
  armed.struck = true;
  armed.struck_at = now;
  return true;
}

void FaultyStream::UpdateFaults(Time now) {
  if (info_.start_up_bytes != 0 || info_.start_up_write) return;
  bool shut = PortIsDown(info_.device.c_str());
  uint64_t rate = 0;
  for (Armed& armed : armed_) {
    const Fault& fault = Of(armed);
    if (armed.over || end_ != End::kNone || fault.kind == Kind::kCorrupt) continue;
    if (!armed.struck) {
      if (now < armed.from) WakeAt(armed.from);
      if (!IsDue(armed, now) || !Strike(armed, now)) continue;
    }
    if (fault.Has(kFor)) {
      if (now >= armed.struck_at + fault.lasts) {
        armed.over = true;
        continue;
      }
      WakeAt(armed.struck_at + fault.lasts);
    }
    switch (fault.kind) {
      case Kind::kCut:
        EndConnection(End::kCut);
        break;
      case Kind::kReset:
        EndConnection(End::kReset);
        break;
      case Kind::kBlackhole:
        shut = true;
        if (!fault.Has(kGiveUp)) break;
        if (now >= armed.struck_at + fault.give_up) {
          EndConnection(End::kGivenUp);
        } else {
          WakeAt(armed.struck_at + fault.give_up);
        }
        break;
      case Kind::kBandwidth:
        rate = rate == 0 ? fault.bits_per_second : std::min(rate, fault.bits_per_second);
        break;
      default:
        break;
    }
  }
  gate_ = shut ? Gate::kShut : Gate::kOpen;
  bits_per_second_ = rate;
}

Duration FaultyStream::DelayNow(Time now) {
  Duration delay{0};
  for (Armed& armed : armed_) {
    const Fault& fault = Of(armed);
    if (fault.kind != Kind::kDelay || armed.over || !armed.struck || !IsDue(armed, now)) continue;
    delay += fault.time;
    if (fault.jitter.count() == 0) continue;
    const double draw = 2 * Injector::Process().Draw(*armed.active) - 1;
    delay += Duration(static_cast<int64_t>(draw * static_cast<double>(fault.jitter.count())));
  }
  return delay;
}

void FaultyStream::EndConnection(End how) {
  end_ = how;
  queue_.clear();
  queued_ = 0;
  socket_full_ = false;
  // A reset takes what the peer has not read yet with it, a cut does not. A peer that is beyond a blackhole hears nothing.
  if (how == End::kCut) stream_->ShutdownWrite();
  if (how == End::kReset) stream_->Abort();
}

IoResult FaultyStream::EndResult(bool reading) const {
  using Result = IoResult::Kind;
  if (end_ == End::kCut) return reading ? IoResult{Result::kEndOfStream} : IoResult{Result::kFailed, 0, EPIPE};
  return {Result::kFailed, 0, end_ == End::kReset ? ECONNRESET : ETIMEDOUT};
}

uint64_t FaultyStream::UntilByteFault() const {
  uint64_t until = UINT64_MAX;
  for (const Armed& armed : armed_) {
    const Fault& fault = Of(armed);
    if (armed.struck || armed.over || fault.after_bytes <= passed_ || fault.kind == Kind::kCorrupt) continue;
    until = std::min(until, fault.after_bytes - passed_);
  }
  return until;
}

void FaultyStream::Passed(size_t bytes) {
  passed_ += bytes;
  if (!armed_.empty()) UpdateFaults(network_.Now());
}

void FaultyStream::Advance() {
  if (stream_ == nullptr || end_ != End::kNone) return;
  const Time now = network_.Now();
  UpdateFaults(now);
  Pump(now);
}

void FaultyStream::Pump(Time now) {
  socket_full_ = false;
  while (!queue_.empty() && gate_ == Gate::kOpen && end_ == End::kNone) {
    Chunk& chunk = queue_.front();
    if (chunk.due > now) return WakeAt(chunk.due);
    uint64_t most = std::min<uint64_t>(chunk.bytes.size(), UntilByteFault());
    if (bits_per_second_ != 0) {
      if (may_send_from_ > now) return WakeAt(may_send_from_);
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
    if (bits_per_second_ != 0) {
      const double seconds = static_cast<double>(result.bytes) * 8 / static_cast<double>(bits_per_second_);
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
  if (queue_.empty() && fin_asked_ && !fin_sent_ && gate_ == Gate::kOpen && end_ == End::kNone) {
    fin_sent_ = true;
    stream_->ShutdownWrite();
  }
}

IoResult FaultyStream::Read(std::span<const iovec> into) {
  Advance();
  if (end_ != End::kNone) return EndResult(true);
  if (gate_ == Gate::kShut) return {};
  const uint64_t most = UntilByteFault();
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
  if (std::exchange(info_.start_up_write, false)) info_.start_up_bytes = wanted;
  if (info_.start_up_bytes != 0) {
    // The MPA Reply, or the RTR: goes out as it is, unless nothing does.
    if (gate_ == Gate::kShut) return {};
    const IoResult result = stream_->Write(Head(from, info_.start_up_bytes));
    if (result.kind == IoResult::Kind::kDone) info_.start_up_bytes -= result.bytes;
    if (info_.start_up_bytes == 0) WakeAt(network_.Now());
    return result;
  }
  Advance();
  if (end_ != End::kNone) return EndResult(false);
  const Time now = network_.Now();
  if (wanted == 0 || (queue_.empty() && gate_ == Gate::kOpen && bits_per_second_ == 0 && DelayNow(now).count() == 0)) {
    return WriteThrough(from);
  }
  return Enqueue(from, now);
}

IoResult FaultyStream::WriteThrough(std::span<const iovec> from) {
  const uint64_t most = UntilByteFault();
  const size_t wanted = Total(from);
  if (most < wanted) {
    const IoResult result = stream_->Write(Head(from, most));
    if (result.kind == IoResult::Kind::kDone) Passed(result.bytes);
    return result;
  }
  const IoResult result = CorruptDue() != nullptr ? WriteCorrupted(from, wanted) : stream_->Write(from);
  if (result.kind == IoResult::Kind::kDone) Passed(result.bytes);
  return result;
}

FaultyStream::Armed* FaultyStream::CorruptDue() {
  const Time now = network_.Now();
  for (Armed& armed : armed_) {
    if (Of(armed).kind == Kind::kCorrupt && !armed.over && IsDue(armed, now)) return &armed;
  }
  return nullptr;
}

// What the owner writes ends with a whole frame, and a frame with its CRC (RFC 5044 section 4.1). So its last byte can change without
// that a length, by which the peer finds frames, is touched; and the CRC of a frame tells of any bit in it.
IoResult FaultyStream::WriteCorrupted(std::span<const iovec> from, size_t bytes) {
  Armed& armed = *CorruptDue();
  std::vector<iovec> pieces = Head(from, bytes - 1);
  const iovec& end = *std::find_if(from.rbegin(), from.rend(), [](const iovec& piece) { return piece.iov_len != 0; });
  uint8_t last = static_cast<const uint8_t*>(end.iov_base)[end.iov_len - 1];
  if (!Injector::Process().Strike(*armed.active, Where(Format("a bit inverted after %llu bytes", static_cast<unsigned long long>(passed_ + bytes))))) {
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

IoResult FaultyStream::Enqueue(std::span<const iovec> from, Time now) {
  const Duration delay = DelayNow(now);
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
  if (Armed* armed = CorruptDue(); armed != nullptr && bytes == Total(from) &&
                                   Injector::Process().Strike(*armed->active, Where("a bit inverted"))) {
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
  if (gate_ == Gate::kShut && end_ == End::kNone) end_ = End::kGivenUp;
  std::vector<uint8_t> unused;
  if (end_ == End::kGivenUp) {
    Release(unused);
  } else if (stream_ != nullptr) {
    stream_->Abort();
  }
}

std::unique_ptr<ByteStream> FaultyStream::Release(std::vector<uint8_t>& rest) {
  std::unique_ptr<ByteStream> stream = std::move(stream_);
  if (stream == nullptr) return nullptr;
  if (gate_ == Gate::kShut || end_ == End::kGivenUp) {
    // Closing would tell the peer.
    network_.RunAt(network_.Now() + kSilence, [held = std::shared_ptr<ByteStream>(std::move(stream))] {});
    return nullptr;
  }
  if (end_ == End::kReset) return nullptr;
  if (end_ == End::kCut) {
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

void FaultyStream::WakeAt(Time when) {
  std::lock_guard lock(waker_->mutex);
  if (when >= waker_->armed) return;
  waker_->armed = when;
  network_.RunAt(when, [waker = waker_, when] {
    std::function<void()> wake;
    {
      std::lock_guard firing(waker->mutex);
      if (waker->armed == when) waker->armed = Time::max();
      wake = waker->wake;
    }
    if (wake) wake();
  });
}

}  // namespace weft::faults
