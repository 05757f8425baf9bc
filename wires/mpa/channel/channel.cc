#include "wires/mpa/channel/channel.h"

#include <cerrno>
#include <chrono>
#include <span>
#include <utility>

#include "base/iovec_length.h"
#include "base/log.h"
#include "base/program_memory.h"
#include "faults/injector.h"
#include "wires/mpa/channel/lingering_close.h"

namespace weft::mpa {
namespace {

using llp::Flushed;
using llp::Received;
using transport::IoResult;

// Linux's siw driver forgets to look at what reaches it between its MPA Reply and the moment at which its queue pair gets the socket:
// often the RTR, and then it never says that the connection is established. It looks when more comes; a zero-length RDMA Write is
// more, and places nothing. The first is due so long after the connection stood, each further one after twice the pause before it, as
// long as the peer is silent: whoever accepts may have lost its processor for a while just then.
constexpr unsigned kMostProbes = 6;
constexpr std::chrono::milliseconds kProbeAfter{20};

constexpr size_t kLongestUlpdu = 65535;

}  // namespace

Channel::Channel(transport::Network& network, BufferPool& pool, std::unique_ptr<transport::ByteStream> stream, ChannelOptions options)
    : network_(network),
      pool_(pool),
      options_(std::move(options)),
      stream_(std::move(stream)),
      sender_({.crc = options_.crc, .markers = options_.send_markers, .max_ulpdu = options_.max_ulpdu}, pool),
      prologue_(options_.prologue),
      may_send_(options_.initiator) {}

Channel::~Channel() { Unwatch(); }

void Channel::Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) {
  receiver_.emplace(FpduReceiver::Options{.crc = options_.crc, .markers = options_.receive_markers, .max_ulpdu = kLongestUlpdu}, pool_, sink);
  user_ = std::move(user);
  if (faults::Enabled()) [[unlikely]] Wrap(options_.start_up_write);
  if (options_.probe) {
    probes_left_ = kMostProbes;
    ProbeLater();
  }
}

bool Channel::ReadyToSend() {
  blocked_ = false;
  if (!prologue_.empty()) {
    const iovec piece{prologue_.data(), prologue_.size()};
    const IoResult result = stream_->Write({&piece, 1});
    if (result.kind == IoResult::Kind::kFailed) failed_ = true;
    prologue_.erase(prologue_.begin(), prologue_.begin() + static_cast<ptrdiff_t>(result.bytes));
    blocked_ = !prologue_.empty();
    UpdateInterest();
    if (blocked_) return false;
  }
  return may_send();
}

Flushed Channel::Flush() {
  const std::span<const iovec> pending = sender_.Pending();
  if (sender_.payload_gone()) [[unlikely]] return {.kind = Flushed::Kind::kFailed};
  if (pending.empty()) return {};
  const size_t wanted = TotalLength(pending);
  const IoResult result = stream_->Write(pending);
  if (result.kind == IoResult::Kind::kFailed) {
    failed_ = true;
    payload_gone_ |= result.error == EFAULT;
    return {.kind = Flushed::Kind::kFailed};
  }
  if (result.kind == IoResult::Kind::kDone) {
    sender_.Consume(result.bytes);
    if (result.bytes == wanted) return {.kind = Flushed::Kind::kAll, .bytes = result.bytes};
  }
  blocked_ = true;
  UpdateInterest();  // whoever called may not come back to try again
  return {.kind = Flushed::Kind::kBlocked, .bytes = result.bytes};
}

Received Channel::Receive(unsigned most) {
  Received received;
  for (unsigned reads = 0; reads < most; ++reads) {
    const std::span<const iovec> into = receiver_->PrepareRead();
    const size_t wanted = TotalLength(into);
    const IoResult result = stream_->Read(into);
    if (result.kind == IoResult::Kind::kFailed && result.error == EFAULT && receiver_->GiveUpPlacement()) [[unlikely]] {
      static_cast<void>(receiver_->Commit(0));
      continue;
    }
    const size_t bytes = result.kind == IoResult::Kind::kDone ? result.bytes : 0;
    if (bytes != 0) {
      may_send_ = true;  // the initiator is in FPDU mode: its first FPDU is here
      probes_left_ = 0;
      received.bytes += bytes;
    }
    const bool well = receiver_->Commit(bytes);
    read_ended_ |= result.kind == IoResult::Kind::kEndOfStream || result.kind == IoResult::Kind::kFailed;
    failed_ |= result.kind == IoResult::Kind::kFailed;
    if (!well) {
      received.kind = Received::Kind::kStopped;
      if (receiver_->error() != FpduError::kNone) {
        received.broken = receiver_->error() == FpduError::kBadCrc ? llp::Error::kDamaged : llp::Error::kMisframed;
      }
      return received;
    }
    switch (result.kind) {
      case IoResult::Kind::kDone:
        received.kind = Received::Kind::kSome;
        if (bytes < wanted) return received;
        break;
      case IoResult::Kind::kWouldBlock:
        return received;
      case IoResult::Kind::kEndOfStream:
        received.kind = Received::Kind::kEnded;
        return received;
      case IoResult::Kind::kFailed:
        received.kind = Received::Kind::kFailed;
        received.error = result.error;
        return received;
    }
  }
  return received;
}

bool Channel::ProbeIsDue() {
  if (probes_left_ == 0 || network_.Now() < probe_at_) return false;
  if (--probes_left_ != 0) ProbeLater();
  return true;
}

void Channel::ProbeLater() {
  probe_at_ = network_.Now() + kProbeAfter * (1 << (kMostProbes - probes_left_));
  probe_timer_ = network_.RunAt(probe_at_, [user = user_] {
    if (auto alive = user.lock()) alive->OnWake();
  });
}

transport::WatchId Channel::Watch(std::shared_ptr<transport::ReadyHandler> handler) {
  interest_ = {.read = true, .write = false};
  watch_ = network_.Watch(*stream_, interest_, std::move(handler));
  return watch_;
}

void Channel::Unwatch() {
  if (watch_ != 0) network_.Unwatch(std::exchange(watch_, 0));
  if (probe_timer_ != 0) network_.Cancel(std::exchange(probe_timer_, 0));
}

void Channel::UpdateInterest() {
  transport::Interest want{.read = !read_ended_, .write = blocked_};
  if (faulty_ != nullptr) [[unlikely]] {
    want = {.read = !read_ended_ && faulty_->wants_read(), .write = faulty_->wants_write(blocked_)};
  }
  if (want == interest_ || watch_ == 0) return;
  interest_ = want;
  network_.SetInterest(watch_, want);
}

void Channel::EndOutput() {
  output_ended_ = true;
  stream_->ShutdownWrite();
}

void Channel::Close(const std::function<void(llp::UlpduWriter&)>& last) {
  if (failed()) return Abort();
  Unwatch();
  // The rest of an FPDU that went out in part has to follow, or the peer would see garbage instead of an end.
  std::vector<uint8_t> rest = std::move(prologue_);
  const auto gather = [&] {
    const std::span<const iovec> pending = sender_.Pending();
    if (sender_.payload_gone()) return false;
    for (const iovec& piece : pending) {
      const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
      const size_t before = rest.size();
      rest.resize(before + piece.iov_len);
      if (!ReadProgramMemory(rest.data() + before, bytes, piece.iov_len)) return false;
    }
    sender_.Consume(TotalLength(pending));
    return true;
  };
  if (!gather()) return Abort();
  last(sender_);
  if (!gather()) return Abort();
  if (faulty_ != nullptr) stream_ = std::exchange(faulty_, nullptr)->Release(rest);
  if (stream_ != nullptr) CloseLingering(network_, std::move(stream_), std::move(rest));
}

void Channel::Abort() {
  Unwatch();
  stream_->Abort();
}

std::string Channel::Describe() const {
  return Format("MPA revision %u, CRC %s, markers %s/%s, MULPDU %zu", options_.revision, options_.crc ? "on" : "off",
                options_.send_markers ? "sent" : "not sent", options_.receive_markers ? "received" : "not received", options_.max_ulpdu);
}

// The stream stays wrapped when the faults go: it may have bytes that it held.
void Channel::Wrap(bool start_up_write) {
  if (faulty_ != nullptr) return faulty_->Reselect();
  faults::ConnectionInfo info{.qp = options_.queue_pair, .device = options_.device, .crc = options_.crc};
  if (!faults::ConcernsConnection(info, stream_->PeerAddress())) return;
  auto wake = [user = user_] {
    if (auto alive = user.lock()) alive->OnWake();
  };
  auto faulty = std::make_unique<faults::FaultyStream>(
      std::move(stream_), std::move(info), faults::StartUp{.bytes = prologue_.size(), .first_write = start_up_write}, network_, std::move(wake));
  faulty_ = faulty.get();
  stream_ = std::move(faulty);
}

}  // namespace weft::mpa
