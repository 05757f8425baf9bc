#include "rdmap/stream.h"

#include <algorithm>

#include "ddp/header.h"
#include "rdmap/inbound.h"
#include "rdmap/opcode.h"
#include "rdmap/outbound.h"
#include "rdmap/read_queues.h"
#include "rdmap/termination.h"

namespace weft::rdmap {

struct Stream::State {
  State(const StreamOptions& options, Host& its_host)
      // An RTR that is a Read needs room on both sides, even where no Reads were agreed on.
      : reads{FixedRing<InboundRead>(std::max(options.ird, options.expected_rtr == llp::Rtr::kRead ? 1u : 0u)),
              FixedRing<OutstandingRead>(std::max(options.ord, 1u))},
        account{.mode = options.delivery, .plain_atomics = options.atomics, .targeted = options.targeted && options.delivery == Delivery::kReliable},
        out(options.ord, its_host, reads, termination, account),
        in(options.expected_rtr, options.scatter_reads, its_host, reads, termination, account, out),
        host(its_host) {}

  Termination termination;
  ReadQueues reads;
  DeliveryAccount account;
  Outbound out;
  Inbound in;
  Host& host;
};

Stream::Stream(const StreamOptions& options, Host& host) : state_(std::make_unique<State>(options, host)) {
  static_assert(sizeof(State) < 4096 - 128, "an idle stream is to stay small");
}
Stream::~Stream() = default;

bool Stream::Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) { return state_->in.Begin(length, head, plan); }
bool Stream::End() { return state_->in.End(); }
void Stream::OnUnplaceable() { state_->in.OnUnplaceable(); }

void Stream::OnUnplaced(size_t length, ByteSpan head, bool gone) { state_->in.OnUnplaced(length, head, gone); }

std::optional<llp::TaggedPlacement> Stream::PlacementOf(ByteSpan header) const {
  if (header.empty() || !ddp::ControlField::Parse(header[0]).tagged) return std::nullopt;
  const auto tagged = ddp::TaggedHeader::Parse(header);
  if (!tagged.ok()) return std::nullopt;
  if (ControlByte::Parse(tagged->rsvd_ulp).opcode != static_cast<uint8_t>(Opcode::kWrite)) return std::nullopt;
  const Outbound& out = state_->out;
  return llp::TaggedPlacement{.tag = tagged->stag.value,
                              .offset = tagged->offset.value,
                              .awaited = out.awaited(),
                              .answered = out.awaited() && state_->account.reliable() && !out.ends_when_placed()};
}

bool Stream::TouchesMemory(ByteSpan header) const {
  if (!state_->account.reliable() || header.size() < 2 || ddp::ControlField::Parse(header[0]).tagged) return true;
  return ControlByte::Parse(header[1]).opcode != static_cast<uint8_t>(Opcode::kDelivery);
}

std::optional<uint32_t> Stream::ReachedTag(ByteSpan header) const {
  if (header.size() < 2) return std::nullopt;
  if (ddp::ControlField::Parse(header[0]).tagged) {
    const auto placement = PlacementOf(header);
    return placement ? std::optional(placement->tag) : std::nullopt;
  }
  if (ControlByte::Parse(header[1]).opcode != static_cast<uint8_t>(Opcode::kReadRequest) || state_->reads.inbound.empty()) return std::nullopt;
  const InboundRead& read = state_->reads.inbound.back();
  return read.is_atomic || read.header.length == 0 ? std::nullopt : std::optional(read.header.source_stag.value);
}

std::optional<llp::TaggedBuffer> Stream::OpenBuffer(uint32_t tag) {
  // Whose a tag is depends on the target, which the next request may change; what is being dropped comes once more.
  if (!state_->termination.operational() || state_->account.targeted || state_->account.dropping) return std::nullopt;
  return state_->host.OpenBuffer(ddp::STag(tag));
}

bool Stream::Transmit(llp::UlpduWriter& out) { return state_->out.Transmit(out, !RtrReceived()); }
void Stream::OnTransmitted(uint64_t position) { state_->out.OnTransmitted(position); }
bool Stream::HasWork() const { return state_->out.HasWork(!RtrReceived()); }
bool Stream::HasWorkBesideRequests() const { return state_->out.HasWorkBesideRequests(!RtrReceived()); }

bool Stream::acknowledgement_wanted() const { return state_->account.reliable() && state_->account.wanted; }
uint32_t Stream::unacknowledged() const { return state_->account.reliable() ? state_->account.owed() : 0; }
void Stream::Acknowledge() { state_->out.Acknowledge(); }
void Stream::ShowReceived(std::atomic<uint32_t>* word) { state_->account.shown = word; }
void Stream::Greet() { state_->out.Greet(); }
void Stream::SetReceiverTimer(uint8_t timer) { state_->account.timer = timer; }
void Stream::Resume() { state_->out.Resume(); }
uint32_t Stream::received() const { return state_->account.received; }
uint64_t Stream::answers() const { return state_->account.answers; }
bool Stream::message_open() const { return state_->in.message_open(); }
uint32_t Stream::acknowledged() const { return state_->out.acknowledged(); }
bool Stream::waiting_for_receiver() const { return state_->out.waiting_for_receiver(); }

void Stream::SendRtr(llp::Rtr kind) { state_->out.SendRtr(kind); }
bool Stream::RtrReceived() const { return state_->in.rtr_received(); }

void Stream::OnLowerLayerError(llp::Error error) {
  if (error != llp::Error::kNone) state_->termination.Fail(Explain(error));
}
void Stream::Terminate(const TerminateMessage& why) { state_->termination.Fail(why); }

StreamState Stream::state() const { return state_->termination.state(); }
const std::optional<TerminateMessage>& Stream::terminate() const { return state_->termination.message(); }
bool Stream::terminated_by_peer() const { return state_->termination.by_peer(); }
uint64_t Stream::terminate_end_position() const { return state_->out.terminate_end_position(); }

bool Stream::ForgetRegion(ddp::STag stag) {
  const bool receiving = state_->in.Forget(stag);
  return state_->out.Forget(stag) || receiving;
}

uint32_t Stream::outstanding_reads() const { return state_->reads.outstanding.size(); }

bool Stream::idle() const {
  return state_->in.idle() && state_->out.idle() && state_->reads.inbound.empty() && state_->reads.outstanding.empty();
}

}  // namespace weft::rdmap
