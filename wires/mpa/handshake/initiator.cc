#include "wires/mpa/handshake/initiator.h"

#include <cerrno>
#include <optional>
#include <utility>

#include "base/log.h"
#include "mpa/fpdu_sender.h"

namespace weft::mpa {
namespace {

using llp::Progress;
using transport::IoResult;

// RFC 6581 section 8.
constexpr uint8_t kInsufficientIrd = 6, kNoMatchingRtr = 7;

std::optional<uint8_t> TerminateCode(StartError error) {
  switch (error) {
    case StartError::kIrdOrdRefused:
      return kInsufficientIrd;
    case StartError::kNoCommonRtr:
      return kNoMatchingRtr;
    default:
      return std::nullopt;
  }
}

}  // namespace

Initiator::Initiator(transport::Network& network, BufferPool& pool, const Settings& settings, host::MeetingPoint& meetings,
                     const transport::SocketAddress& local, const transport::SocketAddress& remote, llp::Proposal ours)
    : session_(network, pool, settings, meetings),
      bind_to_(local),
      remote_(remote),
      ours_(std::move(ours)),
      revision_(static_cast<uint8_t>(settings.mpa_revision)) {}

int Initiator::Begin(std::shared_ptr<transport::ReadyHandler> handler) {
  state_ = State::kConnecting;
  auto stream = session_.network().StartConnect(bind_to_, remote_);
  if (!stream.ok()) return stream.error();
  session_.Open(std::move(stream.value()), /*initiator=*/true);
  session_.stream().Annotate(ours_.comment);
  session_.Watch({.read = false, .write = true}, std::move(handler));
  return 0;
}

// What a peer that knows revision 1 only closes on (RFC 6581 section 3).
bool Initiator::FallBack() {
  if (revision_ < 2) return false;
  revision_ = 1;
  return true;
}

Progress Initiator::Advance() {
  Progress progress;
  if (!session_.is_open()) return progress;
  switch (state_) {
    case State::kConnecting:
      return Connected();
    case State::kSendingRequest:
      SendRequest(&progress);
      break;
    case State::kAwaitingReply:
      if (session_.ReadFrame("MPA reply", &progress)) return OnReply();
      break;
  }
  if (progress.kind != Progress::Kind::kNothing) {
    const bool unanswered = !session_.has_bytes() && (progress.error == ECONNRESET || progress.error == EPIPE);
    if (unanswered && progress.kind == Progress::Kind::kLost) progress.kind = Progress::Kind::kUnanswered;
    session_.Abort();
  }
  return progress;
}

Progress Initiator::Connected() {
  const int error = session_.stream().ConnectError();
  if (error == EINPROGRESS) return {};
  if (error != 0) return {.kind = Progress::Kind::kUnreachable, .error = error, .why = "cannot connect"};
  MakeRequest();
  state_ = State::kSendingRequest;
  Progress failure;
  SendRequest(&failure);
  if (failure.kind == Progress::Kind::kNothing) return {.kind = Progress::Kind::kReached};
  if (failure.error == ECONNRESET || failure.error == EPIPE) failure.kind = Progress::Kind::kUnanswered;
  session_.Abort();
  return failure;
}

void Initiator::MakeRequest() {
  // A Weft responder on this host agrees to go without CRC, others may insist (RFC 5044 section 7.1.1: either side's
  // wish is enough).
  const bool weft_here =
      session_.settings().extensions && Session::IsSameHost(session_.stream().LocalAddress(), remote_);
  params_ = session_.Params(ours_, revision_, session_.WantsCrc(ours_, remote_, weft_here));
  params_.peer_to_peer = revision_ >= 2;
  session_.Invite(ours_);
  if (session_.settings().extensions) session_.AddTrailer(ours_.claims, revision_ >= 2, params_.private_data);
  unsent_ = mpa::MakeRequest(params_).Serialize();
}

bool Initiator::SendRequest(Progress* failure) {
  const iovec piece{unsent_.data(), unsent_.size()};
  const IoResult result = session_.stream().Write({&piece, 1});
  if (result.kind == IoResult::Kind::kFailed) {
    *failure = {.kind = Progress::Kind::kLost, .error = result.error, .why = "cannot send the MPA request"};
    return false;
  }
  unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<ptrdiff_t>(result.bytes));
  if (!unsent_.empty()) return false;  // still watched for writing
  state_ = State::kAwaitingReply;
  session_.ExpectFrame(/*reply=*/true);
  session_.SetInterest({.read = true, .write = false});
  return true;
}

Progress Initiator::OnReply() {
  session_.Unwatch();
  const StartError error = mpa::OnReply(params_, session_.frame(), &outcome_);
  session_.TakeTrailer(outcome_.private_data);
  if (error != StartError::kNone && error != StartError::kRejected) {
    return {.kind = Progress::Kind::kLost,
            .error = EPROTO,
            .why = Format("bad MPA reply: %s", ToString(error)),
            .terminate_code = TerminateCode(error)};
  }
  Progress progress{.kind = Progress::Kind::kRejected};
  if (error == StartError::kNone) {
    progress = {.kind = Progress::Kind::kAccepted, .agreement = Session::Agreement(outcome_)};
    session_.Collect(ours_);
  }
  progress.agreement.claims = session_.claims();
  progress.agreement.private_data = std::move(outcome_.private_data);
  return progress;
}

// The FPDU is the stream's first (RFC 6581 sections 8, 9.1 and 9.2).
void Initiator::Refuse(const std::function<void(llp::UlpduWriter&)>& last) {
  if (!session_.is_open()) return;
  FpduSender sender({.crc = outcome_.crc, .markers = outcome_.send_markers}, session_.pool());
  last(sender);
  std::vector<uint8_t> bytes;
  for (const iovec& piece : sender.Pending()) {
    const auto* from = static_cast<const uint8_t*>(piece.iov_base);
    bytes.insert(bytes.end(), from, from + piece.iov_len);
  }
  session_.CloseWith(std::move(bytes));
}

std::unique_ptr<llp::Channel> Initiator::TakeChannel() {
  return session_.MakeChannel(outcome_, ours_, /*initiator=*/true, {});
}

transport::SocketAddress Initiator::LocalAddress() const {
  return session_.is_open() ? session_.stream().LocalAddress() : bind_to_;
}

}  // namespace weft::mpa
