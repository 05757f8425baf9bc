#include "wires/sctp/channel/channel.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "faults/injector.h"
#include "faults/stream.h"

namespace weft::sctp {
namespace {

using ddp::sctp::SessionState;
using llp::Flushed;
using llp::Received;

// What a byte stream gives in one read, about.
constexpr unsigned kMessagesPerRead = 64;

void CopyBytes(uint8_t* to, const uint8_t* from, size_t count) { std::memcpy(to, from, count); }

}  // namespace

std::unique_lock<std::mutex> Channel::Hold() const {
  return inside_ ? std::unique_lock<std::mutex>() : seat_->association().Hold();
}

void Channel::Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) {
  const Association::Lock lock(seat_->association());
  session().Attach(sink);
  seat_->SetWake([user = std::move(user)] {
    if (const auto alive = user.lock()) alive->OnWake();
  });
  seat_->WakeLater();  // for what came before
  if (faults::Enabled()) [[unlikely]] ApplyFaults();
}

// None is carried out here. One that was asked for and does not come is no fault to be silent about.
void Channel::ApplyFaults() {
  if (!faults::ConcernsConnection({.qp = owner_.queue_pair, .device = owner_.device}, peer_)) return;
  LogWarning(Format("qp 0x%x, peer %s: cut, reset, blackhole, delay, bandwidth, corrupt and port_down do not work on connections over SCTP: "
                    "nothing happens to this one (WEFT_LLP=tcp)",
                    owner_.queue_pair, peer_.ToString().c_str()));
}

// --- to the peer ---

Flushed Channel::Flush() {
  const Association::Lock lock(seat_->association());
  // What the lock's last holder saw may have gone out by his hand: it counts as ours.
  const bool all = seat_->association().SendOf(*seat_);
  const uint64_t consumed = session().consumed();
  const size_t bytes = consumed - std::exchange(reported_, consumed);
  if (seat_->core().lost()) {
    blocked_ = false;
    return {.kind = session().appended() == consumed ? Flushed::Kind::kEmpty : Flushed::Kind::kFailed, .bytes = bytes};
  }
  blocked_ = !all;
  seat_->SetWantsRoom(blocked_);
  if (blocked_) return {.kind = Flushed::Kind::kBlocked, .bytes = bytes};
  return {.kind = bytes == 0 ? Flushed::Kind::kEmpty : Flushed::Kind::kAll, .bytes = bytes};
}

uint64_t Channel::consumed() const {
  const auto lock = Hold();
  return session().consumed();
}

bool Channel::empty() const {
  const auto lock = Hold();
  return session().empty();
}

bool Channel::failed() const {
  const auto lock = Hold();
  return seat_->core().lost();
}

void Channel::TakeOver(const void* begin, size_t length, Copy copy) {
  const auto lock = Hold();
  session().TakeOver(begin, length, copy);
}

size_t Channel::max_ulpdu() const {
  const auto lock = Hold();
  return session().max_ulpdu();
}

bool Channel::HasRoom(size_t payload_length, size_t payload_pieces) const {
  const auto lock = Hold();
  return session().HasRoom(payload_length, payload_pieces);
}

void Channel::Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) {
  const auto lock = Hold();
  session().Append(header, payload, volatile_payload);
}

uint64_t Channel::appended() const {
  const auto lock = Hold();
  return session().appended();
}

// --- from the peer ---

Received Channel::Receive(unsigned most) {
  Association& association = seat_->association();
  const Association::Lock lock(association, seat_.get());
  const uint64_t before = session().received();
  inside_ = true;
  session().SetOpen(true);
  session().Deliver(size_t{most} * kMessagesPerRead);
  association.Poll(most * kMessagesPerRead);
  session().SetOpen(false);
  inside_ = false;
  if (session().deliverable()) seat_->WakeLater();

  Received received{.bytes = session().received() - before};
  if (session().stopped()) {
    received.kind = Received::Kind::kStopped;
  } else if (session().state() == SessionState::kFailed) {
    LogWarning(Format("SCTP association with %s: %s", peer_.ToString().c_str(), session().why().c_str()));
    received.kind = Received::Kind::kStopped;
    received.broken = llp::Error::kMisframed;
  } else if (session().state() == SessionState::kLost || seat_->gap_stayed()) {
    received.kind = Received::Kind::kFailed;
    received.error = seat_->gap_stayed() ? ETIMEDOUT : association.error() != 0 ? association.error() : ECONNRESET;
  } else if (session().state() == SessionState::kEnded) {
    received.kind = Received::Kind::kEnded;
  } else if (received.bytes != 0) {
    received.kind = Received::Kind::kSome;
  }
  return received;
}

transport::WatchId Channel::Watch(std::shared_ptr<transport::ReadyHandler>) {
  const auto lock = Hold();
  return seat_->association().packet_watch();
}

// --- the end ---

void Channel::EndOutput() {
  const Association::Lock lock(seat_->association());
  session().End();
}

void Channel::Close(const std::function<void(llp::UlpduWriter&)>& last) {
  Association& association = seat_->association();
  const Association::Lock lock(association);
  inside_ = true;
  if (!seat_->core().lost()) last(*this);
  inside_ = false;
  session().TakeOver(nullptr, SIZE_MAX, CopyBytes);
  session().End();
  association.Linger(std::move(seat_));
}

std::string Channel::Describe() const {
  const auto lock = Hold();
  return Format("SCTP stream %u, %sMULPDU %zu", session().stream(), session().enhanced() ? "enhanced set-up, " : "",
                session().max_ulpdu());
}

}  // namespace weft::sctp
