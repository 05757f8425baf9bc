#include "wires/mpa/handshake/session.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/log.h"
#include "faults/stream.h"
#include "wires/mpa/channel/lingering_close.h"
#include "mpa/fpdu_layout.h"
#include "transport/pcap.h"
#include "wires/host/channel/channel.h"

namespace weft::mpa {
namespace {

using transport::IoResult;

// Towards others: a whole FPDU in a TCP segment (RFC 5044 section 5), and no longer than RNICs are known to take.
constexpr size_t kForeignFpdu = 16384;
constexpr size_t kSmallestUlpdu = 128;

static_assert(llp::Claims::kReliable == WeftTrailer::kReliable && llp::Claims::kUnreliable == WeftTrailer::kUnreliable &&
              llp::Claims::kAtomics == WeftTrailer::kAtomics);

}  // namespace

void Session::Open(std::unique_ptr<transport::ByteStream> stream, bool initiator) {
  stream_ = transport::CaptureIfAsked(std::move(stream), initiator);
  has_bytes_ = false;
}

void Session::Watch(transport::Interest interest, std::shared_ptr<transport::ReadyHandler> handler) {
  watch_ = network_.Watch(*stream_, interest, std::move(handler));
}

void Session::Unwatch() {
  if (watch_ != 0) network_.Unwatch(std::exchange(watch_, 0));
}

void Session::Abort() {
  Unwatch();
  if (stream_ != nullptr) stream_->Abort();
  stream_.reset();
}

void Session::CloseWith(std::vector<uint8_t> last_words) {
  Unwatch();
  CloseLingering(network_, std::move(stream_), std::move(last_words));
}

bool Session::ReadFrame(const char* what, llp::Progress* failure) {
  for (;;) {
    const MutableByteSpan into = frame_->PrepareRead();
    const iovec piece{into.data(), into.size()};
    const IoResult result = stream_->Read({&piece, 1});
    switch (result.kind) {
      case IoResult::Kind::kWouldBlock:
        return false;
      case IoResult::Kind::kEndOfStream:
      case IoResult::Kind::kFailed:
        failure->kind = llp::Progress::Kind::kLost;
        failure->error = result.error != 0 ? result.error : ECONNRESET;
        failure->why = Format("the connection was closed before the %s was complete", what);
        if (!has_bytes_ && result.kind == IoResult::Kind::kEndOfStream)
          failure->kind = llp::Progress::Kind::kUnanswerable;
        return false;
      case IoResult::Kind::kDone:
        break;
    }
    has_bytes_ = true;
    const StartError error = frame_->Commit(result.bytes);
    if (error != StartError::kNone) {
      failure->kind = llp::Progress::Kind::kLost;
      failure->error = EPROTO;
      failure->why = Format("bad %s: %s", what, ToString(error));
      return false;
    }
    if (frame_->complete()) return true;
  }
}

StartParams Session::Params(const llp::Proposal& ours, uint8_t revision, bool crc) const {
  StartParams params;
  params.revision = revision;
  params.crc = crc;
  params.markers = settings_.markers;
  params.ird = ours.ird;
  params.ord = ours.ord;
  params.private_data = ours.private_data;
  return params;
}

void Session::TakeTrailer(std::vector<uint8_t>& private_data) {
  trailer_ = settings_.extensions ? WeftTrailer::TakeFrom(private_data) : std::nullopt;
}

std::optional<llp::Claims> Session::claims() const {
  if (!trailer_) return std::nullopt;
  return llp::Claims{.host_id = trailer_->host_id,
                     .offers = static_cast<uint8_t>(trailer_->flags & llp::Claims::kOffers),
                     .option_refused = (trailer_->flags & WeftTrailer::kOptionRefused) != 0};
}

bool Session::AddTrailer(const llp::Claims& claims, bool enhanced, std::vector<uint8_t>& private_data) const {
  WeftTrailer trailer{.max_ulpdu = kLargestUlpdu, .flags = claims.offers, .host_id = claims.host_id, .invitation = invitation_};
  if (met_ != nullptr) trailer.flags |= WeftTrailer::kCame;
  if (claims.option_refused) trailer.flags |= WeftTrailer::kOptionRefused;
  const size_t room = PrivateDataRoom(enhanced) - std::min(private_data.size(), PrivateDataRoom(enhanced));
  if (trailer.length() > room) trailer.invitation.reset();
  if (trailer.length() > room) return false;
  trailer.AppendTo(private_data);
  return true;
}

// What needs a byte stream keeps it: captures, markers and CRCs that were asked for, and faults of what passes over the connection.
bool Session::MayShareMemory(const llp::Proposal& ours) const {
  if (!ours.shares_memory || settings_.SharesMemory() == SameHost::kOff) return false;
  if (!settings_.extensions || settings_.markers || settings_.crc == CrcPolicy::kOn) return false;
  if (stream_->fd() < 0 || !IsSameHost(stream_->LocalAddress(), stream_->PeerAddress())) return false;
  const char* why = nullptr;
  if (&stream_->Innermost() != stream_.get()) {
    why = "it is captured";
  } else if (faults::Enabled() && faults::ConcernsConnection({.qp = ours.queue_pair, .device = ours.device}, stream_->PeerAddress())) {
    why = "of faults that concern it";
  }
  if (why != nullptr && TraceEnabled()) Trace(Format("qp 0x%x: the connection stays on TCP because %s", ours.queue_pair, why));
  return why == nullptr;
}

void Session::Invite(const llp::Proposal& ours) {
  Withdraw();
  if (MayShareMemory(ours)) invitation_ = meetings_.Invite();
}

void Session::Collect(const llp::Proposal& ours) {
  if (!invitation_) return;
  const bool came = trailer_ && (trailer_->flags & WeftTrailer::kCame) != 0 && trailer_->host_id == ours.claims.host_id;
  if (came) met_ = meetings_.Collect(*std::exchange(invitation_, std::nullopt));
  Withdraw();
}

void Session::Visit(const llp::Proposal& ours) {
  if (trailer_ && trailer_->invitation && MayShareMemory(ours)) met_ = host::MeetingPoint::Visit(*trailer_->invitation);
}

void Session::Withdraw() {
  if (invitation_) meetings_.Withdraw(*std::exchange(invitation_, std::nullopt));
}

// Without CRC only where the peer is, or can be, on this host. A fault that damages frames of the connection is found
// by CRC only.
bool Session::WantsCrc(const llp::Proposal& ours, const transport::SocketAddress& peer, bool same_host) const {
  if (settings_.crc == CrcPolicy::kOn || (settings_.crc == CrcPolicy::kAuto && !same_host)) return true;
  return faults::Enabled(faults::Kind::kCorrupt) &&
         faults::WantsCrc({.qp = ours.queue_pair, .device = ours.device}, peer);
}

llp::Agreement Session::Agreement(const StartOutcome& outcome) {
  llp::Agreement agreement{.outcome = {.rtr = outcome.rtr}, .reads_agreed = outcome.has_ird_ord};
  if (outcome.has_ird_ord) {
    agreement.outcome.ird = outcome.ird;
    agreement.outcome.ord = outcome.ord;
  }
  return agreement;
}

size_t Session::MaxUlpdu(const StartOutcome& outcome) const {
  if (trailer_) return std::clamp<size_t>(trailer_->max_ulpdu, kSmallestUlpdu, kLargestUlpdu);
  const size_t segment = std::min(stream_->SegmentSize(), kForeignFpdu);
  return std::max(MulpduForSegment(segment, outcome.send_markers), kSmallestUlpdu);
}

std::unique_ptr<llp::Channel> Session::MakeChannel(const StartOutcome& outcome, const llp::Proposal& ours,
                                                   bool initiator, std::vector<uint8_t> reply) {
  ChannelOptions options{.initiator = initiator,
                         .revision = outcome.revision,
                         .crc = outcome.crc,
                         .send_markers = outcome.send_markers,
                         .receive_markers = outcome.receive_markers,
                         .max_ulpdu = MaxUlpdu(outcome),
                         .prologue = std::move(reply),
                         .probe = initiator && !trailer_,
                         .queue_pair = ours.queue_pair,
                         .device = ours.device,
                         .start_up_write = initiator && outcome.rtr != llp::Rtr::kNone};
  auto channel = std::make_unique<Channel>(network_, pool_, std::move(stream_), std::move(options));
  if (met_ == nullptr) return channel;
  return ShareMemory(std::move(channel), ours, initiator);
}

std::unique_ptr<llp::Channel> Session::ShareMemory(std::unique_ptr<llp::Channel> tcp, const llp::Proposal& ours, bool initiator) {
  auto needs_tcp = [info = faults::ConnectionInfo{.qp = ours.queue_pair, .device = ours.device}, peer = tcp->PeerAddress()] {
    return faults::Enabled() && faults::ConcernsConnection(info, peer);
  };
  return std::make_unique<host::Channel>(
      network_, std::move(tcp), std::move(met_),
      host::ChannelOptions{.initiator = initiator, .reach = settings_.SharesMemory() == SameHost::kAuto, .needs_tcp = std::move(needs_tcp)});
}

}  // namespace weft::mpa
