#include "sim/connection/connection.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/program_memory.h"
#include "sim/queues/names.h"

namespace weft::sim {
namespace {

constexpr unsigned kMostReadsPerStep = 32;       // then others get their turn
constexpr int kPollsForMessage = 64;             // in vain, for the rest of a message that has begun to come
constexpr uint64_t kMostOfMessage = 256 * 1024;  // ... and so many bytes of it

constexpr std::chrono::seconds kDrainLimit{5};  // what Disconnect() found posted has this long to go out
// A peer that takes what is in front of our Terminate bit by bit has so long in all; one that takes nothing, so long.
constexpr std::chrono::seconds kTerminateLimit{60}, kStuckLimit{2};

// For llp::Channel::TakeOver. Programs unmap memory before they deregister it, which an adapter that has pinned it does not notice.
bool CopyWhatIsThere(uint8_t* to, const uint8_t* from, size_t count) { return ReadProgramMemory(to, from, count); }

bool IsTooLong(const rdmap::TerminateMessage& why) {
  constexpr uint8_t kUntagged = 2, kMessageTooLong = 5;
  return why.layer == rdmap::TerminateLayer::kDdp && why.error_type == kUntagged && why.error_code == kMessageTooLong;
}

// What a responder waits for before it says anything.
llp::Rtr ExpectedRtr(const ConnectionTerms& terms) { return terms.initiator ? llp::Rtr::kNone : terms.outcome.rtr; }

}  // namespace

Connection::Connection(const ConnectionParts& parts, ConnectionUser& user, std::unique_ptr<llp::Channel> channel,
                       const ConnectionTerms& terms)
    : parts_(parts),
      user_(user),
      terms_(terms),
      channel_(std::move(channel)),
      lent_(channel_->lent()),
      peer_(channel_->PeerAddress()),
      stream_({.ird = terms.outcome.ird,
               .ord = terms.outcome.ord,
               .expected_rtr = ExpectedRtr(terms),
               .delivery = terms.delivery,
               .atomics = terms.atomics,
               .scatter_reads = parts.roce,
               .targeted = parts.options.xrc != nullptr},
              *this),
      acknowledger_(
          stream_, user_,
          [this](transport::Duration delay, transport::Duration otherwise, std::function<void()> work) {
            user_.RunWhenFree(delay, otherwise, [weak = weak_from_this(), work = std::move(work)] {
              if (const auto self = weak.lock(); self != nullptr && !self->over()) work();
            });
          },
          [this] {
            Transmit();
            CheckStream();
          }),
      retired_before_(parts_.requester.queue().retired()),
      established_told_(ExpectedRtr(terms) == llp::Rtr::kNone) {}

Connection::~Connection() = default;

void Connection::Start(std::weak_ptr<llp::ChannelUser> wake, std::shared_ptr<transport::ReadyHandler> ready, const std::string& comment) {
  channel_->Annotate(comment);
  channel_->Start(stream_, std::move(wake));
  if (reliable()) {
    std::atomic<uint32_t>* const shown = channel_->CarriedOutHere();
    stream_.ShowReceived(shown);
    if (shown != nullptr) acknowledger_.Survives();
  }
  if (terms_.initiator && terms_.outcome.rtr != llp::Rtr::kNone) stream_.SendRtr(terms_.outcome.rtr);
  if (terms_.initiator && terms_.outcome.rtr == llp::Rtr::kNone) stream_.Greet();
  AttributesChanged();
  watch_ = channel_->Watch(std::move(ready));
  if (TraceEnabled()) {
    Trace(Format("qp 0x%x connected: %s, peer %s, IRD %u, ORD %u, %s", parts_.number, terms_.initiator ? "initiator" : "responder",
                 peer_.ToString().c_str(), terms_.outcome.ird, terms_.outcome.ord, channel_->Describe().c_str()));
  }
  Transmit();
  CheckStream();
  if (!over()) channel_->UpdateInterest();
}

void Connection::AttributesChanged() {
  stream_.SetReceiverTimer(parts_.attributes.min_rnr_timer);
  channel_->Shut();  // the access flags may be among them
}

transport::TimerId Connection::RunAfter(transport::Duration delay, std::function<void()> work) {
  return user_.RunAfter(delay, [weak = weak_from_this(), work = std::move(work)] {
    if (const auto self = weak.lock(); self != nullptr && !self->over()) work();
  });
}

// --- bytes ---

void Connection::Step(bool eager, Looks looks) {
  if (!eager || !reliable()) return MoveBytes(eager, looks);
  {
    const Completer::Hold hold(parts_.completer);  // the program may end with what it hears
    MoveBytes(eager, looks);
  }
  if (parts_.completer.lost() && !over()) [[unlikely]] CheckStream();
}

void Connection::MoveBytes(bool eager, Looks looks) {
  const bool owed = acknowledger_.wanted();
  const bool received = Receive(looks);
  if (over()) return;
  const uint64_t posted = parts_.requester.queue().posted();
  acknowledger_.OnPoll(received, posted);
  // The round of a spinning program that finds nothing ends here. One that is still told of room to write, since a post took what there was,
  // says so first.
  if (!received && !owed && channel_->quiet() && parts_.requester.all_started()) return;
  if (acknowledger_.owes()) {
    if (acknowledger_.wanted() && eager) {
      acknowledger_.Now();
    } else if (acknowledger_.wanted() && owed && !received) {
      acknowledger_.NowAlone();
    } else if (acknowledger_.wanted() && acknowledger_.goes_ahead()) {
      acknowledger_.NowAhead(posted);
    } else {
      acknowledger_.Later();
    }
  }
  if (HasToSend()) Transmit();
  CheckStream();
  if (!over()) channel_->UpdateInterest();
}

bool Connection::HasToSend() const {
  return closing_ || !parts_.requester.all_started() || !channel_->quiet() || stream_.HasWorkBesideRequests();
}

bool Connection::StepForPoll(bool spinning, bool eager) {
  const uint64_t before = parts_.counters.bytes_received.value();
  Step(eager, Looks::kAgain);
  const bool came = parts_.counters.bytes_received.value() != before;
  if (spinning && came) ReceiveRestOfMessage();
  return came;
}

// A program that finds a completion may look at its memory next, for what comes behind it, and poll no more meanwhile, while the progress
// thread trusts it to: ib_write_lat does. Only right after some of it came, and no more than so much in one poll: a peer that stops in the
// middle, or sends gigabytes, does not hold the program.
void Connection::ReceiveRestOfMessage() {
  uint64_t received = parts_.counters.bytes_received.value();
  const uint64_t enough = received + kMostOfMessage;
  for (int in_vain = 0; !over() && (channel_->in_ulpdu() || stream_.message_open()) && in_vain < kPollsForMessage && received < enough;) {
    Step(/*eager=*/false, Looks::kAgain);
    const uint64_t before = std::exchange(received, parts_.counters.bytes_received.value());
    in_vain = received == before ? in_vain + 1 : 0;
  }
}

void Connection::EndLend() {
  channel_->EndLend();
  Step(/*eager=*/false);
}

void Connection::OnWake() {
  if (channel_->ProbeIsDue() && !closing_) {
    stream_.SendRtr(llp::Rtr::kWrite);
    return Send();
  }
  Step(/*eager=*/true);
  if (!over()) channel_->UpdateInterest();
}

void Connection::Send() {
  Transmit();
  CheckStream();
}

bool Connection::RunErrand() {
  if (!acknowledger_.wanted()) return false;
  acknowledger_.OnErrand();
  Send();
  return true;
}

void Connection::AcceptWhatCame() {
  if (!reliable()) return;
  Receive();
  if (over() || !acknowledger_.owes()) return;
  acknowledger_.Now();
  Transmit();
}

void Connection::OnExit() {
  AcceptWhatCame();
  if (!over()) channel_->OnExit();
}

bool Connection::Receive(Looks looks) {
  const llp::Received received = looks == Looks::kAgain ? channel_->TryReceive(kMostReadsPerStep) : channel_->Receive(kMostReadsPerStep);
  if (received.bytes != 0) {
    parts_.counters.bytes_received.Add(received.bytes);
    if (!communication_told_) [[unlikely]] {
      communication_told_ = true;
      if (user_.awaits_communication()) user_.Tell(News::kCommunication);
    }
  }
  if (!established_told_ && stream_.RtrReceived()) {
    established_told_ = true;
    user_.Tell(News::kEstablished);
  }
  switch (received.kind) {
    case llp::Received::Kind::kNothing:
      return false;
    case llp::Received::Kind::kSome:
      return true;
    case llp::Received::Kind::kStopped:
      stream_.OnLowerLayerError(received.broken);
      return true;  // CheckStream() sees why
    case llp::Received::Kind::kEnded:
      if (stream_.state() == rdmap::StreamState::kTerminating) return true;  // it still has our Terminate to read
      if (channel_->in_ulpdu()) {
        LogWarning(Format("qp 0x%x: %s closed the connection in the middle of a frame; the queue pair is in error", parts_.number,
                          user_.PeerName().c_str()));
      } else if (TraceEnabled()) {
        Trace(Format("qp 0x%x: the peer closed the connection", parts_.number));
      }
      Lose(/*orderly=*/true);
      return true;
    case llp::Received::Kind::kFailed:
      if (parts_.requester.empty() && user_.outlives_peer()) {  // nothing is lost; if it asks for anything later, it hears of it then
        if (TraceEnabled()) Trace(Format("qp 0x%x: lost the connection to %s: %s", parts_.number, user_.PeerName().c_str(), std::strerror(received.error)));
      } else {
        LogWarning(Format("qp 0x%x: lost the connection to %s: %s; the queue pair is in error", parts_.number, user_.PeerName().c_str(),
                          std::strerror(received.error)));
      }
      Lose(/*orderly=*/false);
      return true;
  }
  return true;
}

void Connection::Transmit() {
  if (over() || !channel_->ReadyToSend()) return;
  if (closing_ && acknowledger_.owes()) acknowledger_.Now();  // the last occasion
  for (;;) {
    stream_.Transmit(channel_->writer());
    const llp::Flushed flushed = channel_->Flush();
    if (flushed.kind == llp::Flushed::Kind::kEmpty) break;
    // What the peer sent before it went away (a Terminate, often) may still be readable; Receive() finds the end after it.
    if (flushed.kind == llp::Flushed::Kind::kFailed) return;
    if (flushed.bytes != 0) {
      ++taken_;
      parts_.counters.bytes_sent.Add(flushed.bytes);
      stream_.OnTransmitted(channel_->consumed());
    }
    if (flushed.kind == llp::Flushed::Kind::kBlocked) break;
    if (parts_.requester.all_started() && !stream_.HasWorkBesideRequests()) break;
  }
  if (closing_) FinishDisconnect();
}

// --- rdmap::Host ---

Result<uint8_t*, rdmap::AccessError> Connection::Resolve(ddp::STag stag, ddp::TaggedOffset offset, uint32_t length, rdmap::Access access) {
  return parts_.responder.Resolve(stag, offset, length, access, static_cast<int>(parts_.attributes.qp_access_flags));
}

std::optional<llp::TaggedBuffer> Connection::OpenBuffer(ddp::STag stag) {
  return parts_.responder.OpenBuffer(stag, static_cast<int>(parts_.attributes.qp_access_flags));
}

Result<uint64_t, rdmap::AccessError> Connection::Atomic(ddp::STag stag, ddp::TaggedOffset offset, const rdmap::AtomicOperation& operation) {
  return parts_.responder.Atomic(stag, offset, operation, static_cast<int>(parts_.attributes.qp_access_flags));
}

std::optional<rdmap::ReceiveTarget> Connection::TakeReceive(uint64_t needed) {
  auto target = parts_.responder.TakeReceive(needed, peer_);
  if (parts_.responder.exhausted() && reliable()) parts_.counters.rnr.Add(1);
  return target;
}

std::optional<rdmap::AccessError> Connection::Invalidate(ddp::STag stag) {
  RegionInfo gone;
  if (auto error = parts_.responder.Invalidate(stag, &gone)) return error;
  // Only this stream had a use for it, and it is not placing now: a Send is. Answers that it has not appended look the
  // window up.
  channel_->TakeOver(reinterpret_cast<const void*>(gone.address), gone.length, CopyWhatIsThere);
  return std::nullopt;
}

void Connection::ReceiveIsGone() {
  LogWarning(Format("qp 0x%x: the memory of the oldest receive is not mapped any more", parts_.number));
  if (parts_.responder.filling()) parts_.responder.Fail(IBV_WC_LOC_PROT_ERR);
}

bool Connection::SelectTarget(uint32_t number) {
  if (!parts_.responder.SelectTarget(number)) return false;
  user_.OnTarget(parts_.responder.target()->completions());
  return true;
}

rdmap::Request* Connection::NextRequest() {
  if (parts_.requester.all_started()) return nullptr;
  const uint64_t limit = closing_ ? closing_->last_to_send : user_.may_begin() ? UINT64_MAX : 0;
  rdmap::Request* const next = parts_.requester.Next({.reads = terms_.outcome.ord != 0, .extended = extended(), .atomics = extended() || terms_.atomics}, limit, peer_);
  user_.OnRetired();
  return next;
}

void Connection::Sent(rdmap::Request& request) {
  parts_.requester.Done(request);
  user_.OnRetired();
}

void Connection::ReceiverNotReady(rdmap::Request& request, uint8_t timer) {
  const uint64_t count = parts_.requester.CountOf(request);
  refusals_.Add(count, parts_.attributes.rnr_retry);
  parts_.counters.rnr.Add(1);
  const uint64_t dropped = std::max<uint64_t>(1, parts_.requester.Rewind(count));  // it and what followed it
  if (TraceEnabled()) {
    Trace(Format("qp 0x%x: the peer has no receive for work request %llu (%u)", parts_.number,
                 static_cast<unsigned long long>(parts_.requester.queue().entry(count).id), refusals_.times()));
  }
  if (refusals_.exhausted()) return;  // CheckRequests() sees it
  parts_.counters.retries.Add(dropped);
  refusal_timer_ = RunAfter(Refusals::Wait(timer), [this] {
    refusal_timer_ = 0;
    stream_.Resume();
    Send();
  });
}

void Connection::ForgetRefusals() {
  if (refusal_timer_ != 0) user_.network().Cancel(std::exchange(refusal_timer_, 0));
  refusals_ = {};
}

// --- the end ---

void Connection::CheckStream() {
  if (over()) return;
  switch (stream_.state()) {
    case rdmap::StreamState::kOperational:
      return CheckRequests();
    case rdmap::StreamState::kTerminated:
      return OnTerminated();
    case rdmap::StreamState::kTerminating:
      return OnTerminating();
  }
}

void Connection::CheckRequests() {
  Requester& requester = parts_.requester;
  // Reads and atomics before it may not have been answered yet; nothing behind it goes out meanwhile.
  if (refusals_.exhausted() && requester.queue().retired() == refusals_.refused()) {
    LogWarning(Format("qp 0x%x: the peer still has no receive for work request %llu after %u tries; the queue pair is in error",
                      parts_.number, static_cast<unsigned long long>(requester.oldest().id), refusals_.times()));
    return user_.OnOver(/*orderly=*/true, IBV_WC_RNR_RETRY_EXC_ERR, refusals_.refused());
  }
  if (parts_.completer.lost()) {
    user_.Tell(News::kFatal);
    TellPeerOfLocalError();
    return user_.OnOver(/*orderly=*/!extended());
  }
  if (requester.failed()) {
    const SendEntry& entry = requester.oldest();
    LogWarning(Format("qp 0x%x: work request %llu (%s) cannot be carried out: %s; the queue pair is in error", parts_.number,
                      static_cast<unsigned long long>(entry.id), NameOf(entry.opcode), requester.Explain().c_str()));
    TellPeerOfLocalError();
    return user_.OnOver(/*orderly=*/true, entry.status);
  }
  if (sink_gone_) {
    LogWarning(Format("qp 0x%x: the memory into which work request %llu reads is not mapped any more; the queue pair is in error", parts_.number,
                      static_cast<unsigned long long>(requester.queue().entry(*sink_gone_).id)));
    TellPeerOfLocalError();
    return user_.OnOver(/*orderly=*/!extended(), IBV_WC_LOC_PROT_ERR, sink_gone_);
  }
  if (channel_->payload_gone()) {
    LogWarning(Format("qp 0x%x: memory that was to be sent is not mapped any more; the queue pair is in error", parts_.number));
    const auto blamed = requester.OldestWithPayload();
    return user_.OnOver(/*orderly=*/false, blamed ? std::optional(IBV_WC_LOC_PROT_ERR) : std::nullopt, blamed);
  }
  if (channel_->failed()) {
    Receive();
    if (over()) return;
    if (stream_.state() != rdmap::StreamState::kOperational) return CheckStream();
    Lose(/*orderly=*/false);
  }
}

bool Connection::unused() const {
  if (terms_.to_itself || stream_.received() != 0 || parts_.responder.filling()) return false;
  if (!reliable()) return parts_.requester.queue().retired() == retired_before_;
  return stream_.acknowledged() == 0 && stream_.answers() == 0 && !carried_out_unseen_;
}

void Connection::Lose(bool orderly) {
  const std::optional<uint32_t> carried_out = reliable() ? channel_->CarriedOutByPeer() : std::nullopt;
  if (carried_out) {
    carried_out_unseen_ = *carried_out != stream_.acknowledged();
    parts_.requester.AcceptUpTo(*carried_out);
    user_.OnRetired();
  }
  user_.OnLost(orderly);
}

void Connection::OnTerminated() {
  const rdmap::TerminateMessage& why = *stream_.terminate();
  LogWarning(Format("qp 0x%x: %s terminated the stream: %s", parts_.number, user_.PeerName().c_str(), why.ToString().c_str()));
  if (reliable()) {
    const uint64_t blamed = parts_.requester.BlamedBy(why, (terms_.to_itself ? stream_.received() : stream_.acknowledged()) + 1);
    return user_.OnOver(/*orderly=*/true, parts_.requester.BlameFor(why, blamed), blamed);
  }
  user_.Tell(News::kFatal);
  user_.OnOver(/*orderly=*/true, BlameFor(why));
}

void Connection::OnTerminating() {
  if (stream_.terminate_end_position() == 0) Transmit();
  if (over()) return;
  const bool later = stream_.terminate_end_position() == 0 && channel_->may_send() && !channel_->failed();
  const rdmap::TerminateMessage& why = *stream_.terminate();
  if (!later && terms_.to_itself) return FailByItself(why);
  if (!terms_.to_itself) TellOfTermination(why);
  if (!later) return user_.OnOver(/*orderly=*/true);
  if (!terms_.to_itself) {
    parts_.requester.Flush(std::nullopt);
    parts_.responder.Flush();
  }
  FinishTerminateLater(user_.network().Now() + kTerminateLimit);
}

void Connection::TellOfTermination(const rdmap::TerminateMessage& why) {
  if (std::exchange(termination_told_, true)) return;
  LogWarning(Format("qp 0x%x: terminated the stream from %s: %s", parts_.number, user_.PeerName().c_str(), why.ToString().c_str()));
  user_.Tell(BlameFor(why) == IBV_WC_REM_ACCESS_ERR ? News::kAccessError : News::kRequestError);
  if (parts_.responder.filling() && IsTooLong(why)) parts_.responder.Fail(IBV_WC_LOC_LEN_ERR);
  // The memory of requests and receives is the program's again.
  channel_->DivertPlacement();
  if (stream_.terminate_end_position() == 0) channel_->TakeOver(nullptr, SIZE_MAX, CopyWhatIsThere);
  user_.OnTerminating(without_memory_ ? std::optional(IBV_WC_LOC_PROT_ERR) : std::nullopt, without_memory_);
  ForgetRefusals();
}

void Connection::FailByItself(const rdmap::TerminateMessage& why) {
  // What it has from itself is done, although the acknowledgement did not come back.
  const uint32_t received = stream_.received();
  parts_.requester.AcceptUpTo(received);
  const uint64_t blamed = parts_.requester.BlamedBy(why, received + 1);
  LogWarning(Format("qp 0x%x: terminated the stream from itself: %s", parts_.number, why.ToString().c_str()));
  if (parts_.responder.filling() && IsTooLong(why)) parts_.responder.Fail(IBV_WC_LOC_LEN_ERR);
  if (without_memory_) return user_.OnOver(/*orderly=*/true, IBV_WC_LOC_PROT_ERR, without_memory_);
  user_.OnOver(/*orderly=*/true, parts_.requester.BlameFor(why, blamed), blamed);
}

void Connection::TellPeerOfLocalError() {
  if (!extended()) stream_.Terminate({});  // RDMAP, local catastrophic error
}

void Connection::FinishTerminateLater(transport::Time until) {
  // There is no room: the Terminate, and the answers in front of it, follow when there is; nothing for a while is the end.
  if (close_timer_ != 0) return;
  close_timer_ = RunAfter(kStuckLimit, [this, before = channel_->consumed(), until] {
    close_timer_ = 0;
    const bool stuck = channel_->consumed() == before;
    if (stuck || user_.network().Now() >= until) return user_.OnOver(/*orderly=*/false);
    FinishTerminateLater(until);
  });
}

void Connection::Disconnect() {
  closing_ = {.last_to_send = parts_.requester.queue().posted()};
  Transmit();
  FinishDisconnect();
  CheckStream();
}

void Connection::FinishDisconnect() {
  if (closing_->output_ended) return;
  if (channel_->empty() && (parts_.requester.queue().retired() >= closing_->last_to_send || !channel_->may_send())) {
    closing_->output_ended = true;
    channel_->EndOutput();
  }
  if (close_timer_ == 0) close_timer_ = RunAfter(kDrainLimit, [this] { user_.OnOver(/*orderly=*/false); });
}

void Connection::Close(bool orderly) {
  if (close_timer_ != 0) user_.network().Cancel(std::exchange(close_timer_, 0));
  ForgetRefusals();
  if (orderly) {
    if (acknowledger_.owes() && stream_.state() == rdmap::StreamState::kOperational) {
      acknowledger_.Now();
      stream_.Transmit(channel_->writer());
    }
    // A plain stream's Terminate about an error of our own: nothing goes in front of it.
    const bool says_why = !extended() && channel_->may_send() && stream_.state() == rdmap::StreamState::kTerminating;
    channel_->Close([&](llp::UlpduWriter& out) {
      if (says_why) stream_.Transmit(out);
    });
  } else {
    channel_->Abort();
  }
  channel_.reset();
  user_.Tell(established_told_ ? News::kDisconnected : News::kNeverEstablished);
}

// --- memory that goes away ---

void Connection::CloseToPeer(const RegionInfo& gone) {
  // Answers of which the stream knows no more are among it.
  if (gone.length != 0) channel_->TakeOver(reinterpret_cast<const void*>(gone.address), gone.length, CopyWhatIsThere);
}

void Connection::ForgetRegion(const RegionInfo& gone, std::optional<uint64_t> request) {
  CloseToPeer(gone);
  const std::optional<uint64_t> ours = parts_.requester.ForgetRegion(gone);
  bool used = ours.has_value();
  used |= stream_.ForgetRegion(gone.stag);
  for (const ddp::STag window : parts_.responder.WindowsOf(gone)) used |= window.value != 0 && stream_.ForgetRegion(window);
  used |= parts_.responder.IsFilling(gone);
  if (used) channel_->DivertPlacement();
  if (request) parts_.requester.DoneRevoking(*request);
  user_.OnRetired();
  if (!used) return;
  LogWarning(
      Format("qp 0x%x: memory 0x%08x was deregistered or invalidated while the queue pair still used it: the connection is closed; "
             "wait for the work requests' completions, and tell the peer, before the memory goes",
             parts_.number, gone.stag.value));
  if (stream_.state() == rdmap::StreamState::kOperational) {  // a request or a receive of our own
    TellPeerOfLocalError();
    return user_.OnOver(/*orderly=*/!extended(), IBV_WC_LOC_PROT_ERR, ours);
  }
  without_memory_ = ours;
  Send();
  if (!over()) user_.OnOver(/*orderly=*/false, IBV_WC_LOC_PROT_ERR, ours);
}

void Connection::ApplyFaults() {
  channel_->ApplyFaults();
  Step(/*eager=*/true);
  if (!over()) channel_->UpdateInterest();
}

}  // namespace weft::sim
