#include "wires/sctp/handshake/responder.h"

#include <cerrno>
#include <utility>

#include "wires/sctp/channel/channel.h"
#include "wires/sctp/handshake/session_set_up.h"

namespace weft::sctp {

using ddp::sctp::SessionState;
using ddp::sctp::SetUpData;
using llp::Progress;

int Responder::Begin(std::shared_ptr<transport::ReadyHandler> handler) {
  handler_ = std::move(handler);
  const Association::Lock lock(seat_->association());
  seat_->SetWake(Ring(handler_));
  seat_->WakeLater();
  return 0;
}

Progress Responder::Advance() {
  if (seat_ == nullptr) return {};
  Progress progress;
  {
    const Association::Lock lock(seat_->association());
    const ddp::sctp::Session& session = seat_->session();
    if (session.state() == SessionState::kRequested) {
      if (std::exchange(requested_, true)) return {};
      request_ = SetUpData::Parse(session.private_data(), session.enhanced(), wire_.settings().extensions);
      progress.kind = Progress::Kind::kRequested;
      progress.request.private_data = request_.program;
      if (request_.reads) {
        const llp::Outcome limits = llp::DescribeReads(*request_.reads);
        progress.request.reads = {.ird = limits.ird, .ord = limits.ord};
      }
      return progress;
    }
    if (session.state() == SessionState::kAccepted) return {};
    progress = {
        .kind = Progress::Kind::kLost, .error = ECONNRESET, .why = "it left before its session request was answered"};
    if (session.state() == SessionState::kFailed) {
      progress.error = EPROTO;
      progress.why = session.why();
    }
  }
  Abandon();
  return progress;
}

Result<llp::Agreement, int> Responder::Accept(llp::Proposal ours) {
  if (ours.private_data.size() > SetUpData::Room(request_.reads.has_value())) return EINVAL;
  if (seat_ == nullptr) return ECONNRESET;
  queue_pair_ = ours.queue_pair;
  device_ = ours.device;
  llp::Agreement agreement{.reads_agreed = request_.reads.has_value()};
  SetUpData reply{.program = std::move(ours.private_data)};
  if (request_.reads) reply.reads = llp::AnswerReads(*request_.reads, ReadsOf(ours), &agreement.outcome);
  if (request_.trailer && HasRoomForTrailer(reply)) {
    reply.trailer = TrailerOf(ours.claims);
    agreement.claims = ClaimsOf(request_);
  }
  const Association::Lock lock(seat_->association());
  if (!seat_->session().Accept(*reply.Serialize())) return ECONNRESET;
  // Another Weft says nothing on a session before it has our answer.
  if (request_.trailer) seat_->session().AssumePeerWaits();
  return agreement;
}

int Responder::Reject(const std::vector<uint8_t>& private_data, const llp::Claims* claims) {
  SetUpData reply{.program = private_data};  // RFC 6581 has no IRD and ORD in a Reject over SCTP
  if (claims != nullptr && request_.trailer) reply.trailer = TrailerOf(*claims);
  const auto bytes = reply.Serialize();
  if (!bytes) return EINVAL;
  if (seat_ == nullptr) return 0;
  Association& association = seat_->association();
  const Association::Lock lock(association);
  seat_->session().Reject(*bytes);
  association.Linger(std::move(seat_));
  return 0;
}

std::unique_ptr<llp::Channel> Responder::TakeChannel() {
  return std::make_unique<Channel>(std::move(seat_), remote_, Channel::Owner{queue_pair_, device_});
}

}  // namespace weft::sctp
