#include "wires/sctp/handshake/initiator.h"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/program_memory.h"
#include "wires/sctp/channel/channel.h"
#include "wires/sctp/handshake/session_set_up.h"

namespace weft::sctp {
namespace {

using ddp::sctp::SessionState;
using ddp::sctp::SetUpData;
using llp::Progress;

// RFC 6581 section 8.
constexpr uint8_t kInsufficientIrd = 6;

// How long a peer has that answers in IP and does not know Weft's search.
constexpr std::chrono::seconds kRefusalGrace{1};

// How many ports of SCTP that other processes of this host have at the listener are tried.
constexpr int kMostPorts = 20;

bool CopyWhatIsThere(uint8_t* to, const uint8_t* from, size_t count) { return ReadProgramMemory(to, from, count); }

}  // namespace

int Initiator::Begin(std::shared_ptr<transport::ReadyHandler> handler) {
  handler_ = std::move(handler);
  // Asked for each time: a listener may be gone, or another process's, while an association is still there.
  if (wire_.settings().sctp.carriage == SctpSettings::Carriage::kUdp) return Search();
  auto association = wire_.Reach(local_, remote_, /*udp_port=*/0);
  if (!association.ok()) return association.error();
  Use(std::move(*association));
  // In IP nobody says that nobody listens, but where a Weft does not listen a search is refused.
  if (Search() == 0) {
    refused_from_ = wire_.network().Now() + kRefusalGrace;
    wire_.network().RunAt(refused_from_, Ring(handler_));
  }
  return 0;
}

int Initiator::Search() {
  auto search = wire_.Locate(local_, remote_);
  if (!search.ok()) return search.error();
  search_ = std::move(*search);
  search_->Wait(Ring(handler_));
  return 0;
}

void Initiator::Use(std::shared_ptr<Association> association) {
  association_ = std::move(association);
  const Association::Lock lock(*association_);
  if (association_->state() == Association::State::kConnecting) {
    association_->WaitUntilUp(Ring(handler_));
  } else {
    wire_.network().Post(Ring(handler_));
  }
}

Progress Initiator::Located() {
  const auto udp_port = search_->outcome();
  int error = udp_port.ok() ? 0 : udp_port.error();
  if (error == EINPROGRESS) return {};
  search_.reset();
  if (error == 0) {
    udp_port_ = *udp_port;
    auto association = wire_.Reach(local_, remote_, udp_port_);
    if (association.ok()) {
      Use(std::move(*association));
      return {};
    }
    error = association.error();
  }
  return {.kind = Progress::Kind::kUnreachable, .error = error, .why = "no route to an SCTP listener"};
}

Progress Initiator::Advance() {
  if (association_ == nullptr) {
    if (search_ == nullptr) return {};
    Progress progress = Located();
    if (progress.kind != Progress::Kind::kNothing) Abandon();
    return progress;
  }
  Progress progress = seat_ == nullptr ? Ask() : OnAnswer();
  switch (progress.kind) {
    case Progress::Kind::kUnreachable:
    case Progress::Kind::kUnanswered:
      Abandon();
      break;
    case Progress::Kind::kLost:
      if (!progress.terminate_code) Abandon();
      break;
    default:
      break;
  }
  return progress;
}

Progress Initiator::Ask() {
  SetUpData data{.program = ours_.private_data};
  if (enhanced_) data.reads = llp::AskForReads(ReadsOf(ours_));
  if (wire_.settings().extensions) data.trailer = TrailerOf(ours_.claims);
  const auto bytes = data.Serialize();
  if (!bytes) return {.kind = Progress::Kind::kLost, .error = EINVAL, .why = "too much private data"};
  {
    const Association::Lock lock(*association_);
    switch (association_->state()) {
      case Association::State::kConnecting:
        if (search_ != nullptr && wire_.network().Now() >= refused_from_) {
          if (const auto outcome = search_->outcome(); !outcome.ok() && outcome.error() == ECONNREFUSED)
            return {.kind = Progress::Kind::kUnreachable, .error = ECONNREFUSED, .why = "nobody listens"};
        }
        return {};
      case Association::State::kOver:
        if (association_->error() == EADDRINUSE && ports_tried_++ < kMostPorts) break;
        return {.kind = association_->error() == EPROTO ? Progress::Kind::kLost : Progress::Kind::kUnreachable,
                .error = association_->error(),
                .why = association_->why()};
      case Association::State::kUp:
        break;
    }
    seat_ = association_->Open(*bytes, enhanced_);
    if (seat_ != nullptr) {
      search_.reset();
      seat_->SetWake(Ring(handler_));
      return {.kind = Progress::Kind::kReached};
    }
  }
  // Others who waited for it took each of its streams, or its port was another process's: to the next.
  auto another = wire_.Reach(local_, remote_, udp_port_, association_.get());
  if (!another.ok()) return {.kind = Progress::Kind::kUnreachable, .error = another.error(), .why = "no other association"};
  Use(std::move(*another));
  return {};
}

Progress Initiator::OnAnswer() {
  const Association::Lock lock(*association_);
  const ddp::sctp::Session& session = seat_->session();
  Progress progress;
  switch (session.state()) {
    case SessionState::kInitiated:
    case SessionState::kRequested:
      return progress;
    case SessionState::kRefused:
      return {.kind = Progress::Kind::kUnanswered,
              .error = ECONNRESET,
              .why = "the peer ended the session without an answer"};
    case SessionState::kFailed:
      return {.kind = Progress::Kind::kLost, .error = EPROTO, .why = session.why()};
    case SessionState::kLost:
      return {.kind = Progress::Kind::kLost,
              .error = association_->error() != 0 ? association_->error() : ECONNRESET,
              .why = "the association was lost before the session was answered"};
    case SessionState::kRejected: {
      SetUpData said = SetUpData::Parse(session.private_data(), /*has_reads=*/false, wire_.settings().extensions);
      progress.kind = Progress::Kind::kRejected;
      progress.agreement.claims = ClaimsOf(said);
      progress.agreement.private_data = std::move(said.program);
      return progress;
    }
    case SessionState::kAccepted:
    case SessionState::kEnded:  // after it accepted: the channel will say so
      break;
  }
  SetUpData data = SetUpData::Parse(session.private_data(), session.enhanced(), wire_.settings().extensions);
  progress.kind = Progress::Kind::kAccepted;
  progress.agreement.claims = ClaimsOf(data);
  progress.agreement.private_data = std::move(data.program);
  if (!data.reads) return progress;
  progress.agreement.reads_agreed = true;
  const auto error = llp::OnReadsAnswer(ReadsOf(ours_), *data.reads, /*rejected=*/false, &progress.agreement.outcome);
  if (error == llp::ReadsError::kNone) return progress;
  return {.kind = Progress::Kind::kLost,
          .error = EPROTO,
          .why = "bad answer to the session request: more RDMA Reads than we accept",
          .terminate_code = kInsufficientIrd};
}

void Initiator::Refuse(const std::function<void(llp::UlpduWriter&)>& last) {
  if (seat_ == nullptr) return;
  {
    const Association::Lock lock(*association_);
    if (seat_->session().state() == SessionState::kAccepted) last(seat_->session());
    seat_->session().TakeOver(nullptr, SIZE_MAX, CopyWhatIsThere);
    seat_->session().End();
    association_->Linger(std::move(seat_));
  }
  Abandon();
}

void Initiator::Abandon() {
  seat_.reset();
  search_.reset();
  association_.reset();
  handler_.reset();
}

std::unique_ptr<llp::Channel> Initiator::TakeChannel() {
  auto channel = std::make_unique<Channel>(std::move(seat_), remote_, Channel::Owner{ours_.queue_pair, ours_.device});
  Abandon();
  return channel;
}

transport::SocketAddress Initiator::LocalAddress() const {
  if (association_ == nullptr) return local_;
  const auto lock = association_->Hold();
  return association_->local_addresses().empty() ? local_ : association_->local_addresses()[0];
}

}  // namespace weft::sctp
