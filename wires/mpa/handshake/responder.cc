#include "wires/mpa/handshake/responder.h"

#include <cerrno>
#include <utility>

namespace weft::mpa {
namespace {

using llp::Progress;
using transport::IoResult;

}  // namespace

Responder::Responder(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings,
                     std::unique_ptr<transport::ByteStream> stream)
    : session_(network, pool, settings, meetings), local_(stream->LocalAddress()), remote_(stream->PeerAddress()) {
  session_.Open(std::move(stream), /*initiator=*/false);
}

int Responder::Begin(std::shared_ptr<transport::ReadyHandler> handler) {
  session_.ExpectFrame(/*reply=*/false);
  session_.Watch({.read = true, .write = false}, std::move(handler));
  return 0;
}

Progress Responder::Advance() {
  if (!session_.is_open()) return {};
  if (requested_) return Waits();
  Progress progress;
  if (session_.ReadFrame("MPA request", &progress)) {
    StartOutcome outcome = DescribeRequest(session_.frame());
    session_.TakeTrailer(outcome.private_data);
    requested_ = true;
    progress.kind = Progress::Kind::kRequested;
    progress.request.private_data = std::move(outcome.private_data);
    if (outcome.has_ird_ord) progress.request.reads = {.ird = outcome.ird, .ord = outcome.ord};
    return progress;
  }
  if (progress.kind != Progress::Kind::kNothing) {
    progress.kind = Progress::Kind::kLost;
    session_.Abort();
  }
  return progress;
}

// The peer may send nothing before it has the answer (RFC 5044 section 7.1.2), so that whatever comes ends the
// connection.
Progress Responder::Waits() {
  uint8_t byte;
  const iovec into{&byte, 1};
  const IoResult result = session_.stream().Read({&into, 1});
  Progress progress{.kind = Progress::Kind::kLost};
  switch (result.kind) {
    case IoResult::Kind::kWouldBlock:
      return {};
    case IoResult::Kind::kDone:
      progress.error = EPROTO;
      progress.why = "it sends before its MPA request is answered";
      break;
    case IoResult::Kind::kEndOfStream:
    case IoResult::Kind::kFailed:
      progress.error = result.error != 0 ? result.error : ECONNRESET;
      progress.why = "it left before its MPA request was answered";
      break;
  }
  session_.Abort();
  return progress;
}

Result<llp::Agreement, int> Responder::Accept(llp::Proposal ours) {
  const StartFrame& request = session_.frame();
  if (ours.private_data.size() > PrivateDataRoom(request.enhanced)) return EINVAL;
  session_.Unwatch();
  // What the peer says of its host is a claim. That its address is ours is proven: nobody else's answers reach it. The
  // claim is needed all the same, since a forwarder (ssh, a virtual machine's network) has our address too.
  const bool same_host =
      session_.trailer() && session_.trailer()->host_id == ours.claims.host_id && Session::IsSameHost(local_, remote_);
  const auto revision = static_cast<uint8_t>(session_.settings().mpa_revision);
  StartParams params = session_.Params(ours, revision, session_.WantsCrc(ours, remote_, same_host));
  if (same_host && !params.crc) session_.Visit(ours);
  const bool told = session_.trailer() && session_.AddTrailer(ours.claims, request.enhanced, params.private_data);
  reply_ = MakeReply(request, params, &outcome_).Serialize();
  ours_ = std::move(ours);
  llp::Agreement agreement = Session::Agreement(outcome_);
  if (told) agreement.claims = session_.claims();
  return agreement;
}

int Responder::Reject(const std::vector<uint8_t>& private_data, const llp::Claims* claims) {
  const StartFrame& request = session_.frame();
  if (private_data.size() > PrivateDataRoom(request.enhanced)) return EINVAL;
  std::vector<uint8_t> theirs = private_data;
  if (claims != nullptr && session_.trailer()) session_.AddTrailer(*claims, request.enhanced, theirs);
  session_.CloseWith(MakeReject(request, theirs).Serialize());
  return 0;
}

std::unique_ptr<llp::Channel> Responder::TakeChannel() {
  return session_.MakeChannel(outcome_, ours_, /*initiator=*/false, std::move(reply_));
}

}  // namespace weft::mpa
