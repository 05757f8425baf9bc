#include "wires/sctp/channel/channel.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/processors.h"
#include "base/program_memory.h"
#include "faults/injector.h"

namespace weft::sctp {
namespace {

using ddp::sctp::SessionState;
using llp::Flushed;
using llp::Received;

// What a byte stream gives in one read, about.
constexpr unsigned kMessagesPerRead = 64;

// How long a session in a blackhole outlives its queue pair.
constexpr std::chrono::seconds kSilence{60};

// What comes for it then is thrown away.
class NoSink final : public llp::UlpduSink {
 public:
  bool Begin(size_t, ByteSpan, llp::UlpduPlan*) override { return false; }
  bool End() override { return false; }
};
NoSink g_no_sink;

bool CopyWhatIsThere(uint8_t* to, const uint8_t* from, size_t count) { return ReadProgramMemory(to, from, count); }

}  // namespace

std::unique_lock<std::mutex> Channel::Hold() const {
  return inside_ ? std::unique_lock<std::mutex>() : seat_->association().Hold();
}

void Channel::Start(llp::UlpduSink& sink, std::weak_ptr<llp::ChannelUser> user) {
  user_ = user;
  {
    const Association::Lock lock(seat_->association());
    session().Attach(sink);
    seat_->SetWake([user = std::move(user)] {
      if (const auto alive = user.lock()) alive->OnWake();
    });
    seat_->WakeLater();  // for what came before
  }
  if (faults::Enabled()) [[unlikely]] ApplyFaults();
}

// --- faults ---

void Channel::ApplyFaults() {
  const faults::ConnectionInfo info{.qp = owner_.queue_pair, .device = owner_.device, .crc = true};
  const Association::Lock lock(seat_->association());
  if (faults_ != nullptr) {
    faults_->Reselect();
  } else if (faults::ConcernsConnection(info, peer_)) {
    faults_ = std::make_unique<SessionFaults>(info, peer_, seat_->association().network(), [user = user_] {
      if (const auto alive = user.lock()) alive->OnWake();
    });
  } else {
    return;
  }
  Limit();
  seat_->WakeLater();
}

void Channel::Limit() {
  if (faults_->Update()) EndByFault();
  session().SetSendLimit(faults_->end() == SessionFaults::End::kNone || faults_->silent()
                             ? faults_->Limit(session().consumed(), session().appended())
                             : UINT64_MAX);
}

// What was appended and is not out is lost, as in a socket.
void Channel::EndByFault() {
  if (faults_->end() == SessionFaults::End::kGivenUp) return;
  session().SetSendLimit(UINT64_MAX);
  session().Abort();
}

// The end of a channel would tell the peer, who is to hear nothing.
void Channel::KeepSilent() {
  transport::Network& network = seat_->association().network();
  {
    const Association::Lock lock(seat_->association());
    seat_->SetWake(nullptr);
    session().SetSendLimit(session().consumed());
    session().TakeOver(nullptr, SIZE_MAX, CopyWhatIsThere);
    session().Attach(g_no_sink);
  }
  network.RunAt(network.Now() + kSilence, [held = std::shared_ptr<Seat>(std::move(seat_))] {});
}

// --- to the peer ---

Flushed Channel::Flush() {
  const Association::Lock lock(seat_->association());
  if (faults_ != nullptr) [[unlikely]] {
    Limit();
    if (!session().empty() && faults_->end() == SessionFaults::End::kNone && faults_->StrikeCorruption() &&
        !seat_->association().DamageNextPacket()) {
      LogWarning("the kernel's SCTP makes its packets itself: nothing was corrupted");
    }
  }
  // What the lock's last holder saw may have gone out by his hand: it counts as ours.
  const bool all = seat_->association().SendOf(*seat_);
  if (faults_ != nullptr && faults_->Sent(session().consumed())) [[unlikely]] EndByFault();
  const uint64_t consumed = session().consumed();
  const size_t bytes = consumed - std::exchange(reported_, consumed);
  if (faults_ != nullptr && faults_->end() != SessionFaults::End::kNone) [[unlikely]] {
    blocked_ = false;
    return {.kind = Flushed::Kind::kFailed, .bytes = bytes};
  }
  if (session().payload_gone()) [[unlikely]] return {.kind = Flushed::Kind::kFailed, .bytes = bytes};
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
  return seat_->core().lost() || session().payload_gone() || (faults_ != nullptr && faults_->end() != SessionFaults::End::kNone);
}

void Channel::TakeOver(const void* begin, size_t length, Copy copy) {
  const auto lock = Hold();
  session().TakeOver(begin, length, copy);
}

bool Channel::payload_gone() const {
  const auto lock = Hold();
  return session().payload_gone();
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
  const Association::Lock lock(seat_->association(), seat_.get());
  return ReceiveLocked(most);
}

Received Channel::TryReceive(unsigned most) {
  const Association::Lock lock(seat_->association(), seat_.get(), std::try_to_lock);
  turned_away_ = !lock.owned();
  return lock.owned() ? ReceiveLocked(most) : Received{};
}

Received Channel::ReceiveLocked(unsigned most) {
  Association& association = seat_->association();
  if (faults_ != nullptr) [[unlikely]] {
    using End = SessionFaults::End;
    if (faults_->Update()) EndByFault();
    if (faults_->end() == End::kCut) return {.kind = Received::Kind::kEnded};
    if (faults_->end() != End::kNone) return {.kind = Received::Kind::kFailed, .error = faults_->end() == End::kReset ? ECONNRESET : ETIMEDOUT};
    if (faults_->shut()) return {};
  }
  const uint64_t before = session().received();
  inside_ = true;
  session().SetOpen(true);
  session().Deliver(size_t{most} * kMessagesPerRead);
  association.Poll(most * kMessagesPerRead);
  session().SetOpen(false);
  inside_ = false;
  if (session().deliverable()) seat_->WakeLater();

  Received received{.bytes = session().received() - before};
  if (faults_ != nullptr && faults_->Received(received.bytes)) [[unlikely]] {
    EndByFault();
    seat_->WakeLater();
    received.kind = Received::Kind::kSome;  // the next call says how it ended
    return received;
  }
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

bool Channel::Lend() {
  seat_->Lend();
  // The peer may be of this host; and the thread with the lock may wait for this very processor.
  return std::exchange(turned_away_, false) || OnlyOneProcessor();
}

// --- the end ---

void Channel::EndOutput() {
  const Association::Lock lock(seat_->association());
  session().End();
}

void Channel::Abort() {
  if (faults_ != nullptr && seat_ != nullptr && faults_->silent()) [[unlikely]] return KeepSilent();
  seat_.reset();
}

void Channel::Close(const std::function<void(llp::UlpduWriter&)>& last) {
  if (faults_ != nullptr && faults_->silent()) [[unlikely]] return KeepSilent();
  Association& association = seat_->association();
  const Association::Lock lock(association);
  inside_ = true;
  if (!seat_->core().lost()) last(*this);
  inside_ = false;
  session().TakeOver(nullptr, SIZE_MAX, CopyWhatIsThere);
  session().End();
  association.Linger(std::move(seat_));
}

std::string Channel::Describe() const {
  const auto lock = Hold();
  return Format("SCTP stream %u, %sMULPDU %zu", session().stream(), session().enhanced() ? "enhanced set-up, " : "",
                session().max_ulpdu());
}

}  // namespace weft::sctp
