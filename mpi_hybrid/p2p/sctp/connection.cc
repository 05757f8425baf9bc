#include "mpi_hybrid/p2p/sctp/connection.h"

#include <errno.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/iovec_length.h"
#include "base/log.h"

namespace weft::mpi {
namespace {

using transport::IoResult;
using transport::sctp::Event;
using transport::sctp::Received;

constexpr size_t kPieces = 64;
constexpr size_t kRecord = 64 * 1024;       // most bytes of one message: no other stream waits for more
constexpr size_t kFirstRecord = 16 * 1024;  // the same with a greeting, which may have to be sent again
// Of each message so many bytes are received before it is known whose they are, and copied to their place; the rest
// goes straight there.
constexpr size_t kLook = 2048;
// Messages of one connection before others have their turn.
constexpr int kReadsPerTurn = 32, kWritesPerTurn = 32;

// The first `most` bytes of `pieces`; how many pieces.
size_t Clip(std::span<iovec> pieces, size_t most) {
  size_t count = 0;
  for (; count < pieces.size() && most != 0; ++count) {
    pieces[count].iov_len = std::min(pieces[count].iov_len, most);
    most -= pieces[count].iov_len;
  }
  return count;
}

}  // namespace

SctpConnection::SctpConnection(const Setting& setting, std::shared_ptr<Bell> bell, uint64_t number,
                               std::unique_ptr<transport::sctp::Association> association, bool up)
    : setting_(setting),
      number_(number),
      association_(std::move(association)),
      bell_(std::make_shared<AssociationBell>(std::move(bell), number, *association_)),
      up_(up) {
  association_->Watch(bell_);
}

SctpConnection::~SctpConnection() {
  bell_->Forget();
  if (link_ != nullptr) link_->set_first_is_out(false);
}

void SctpConnection::SetLink(Link& link, const Nonce& nonce) {
  link_ = &link;
  Challenge::Write(nonce, setting_.processes.NameOf(link.peer()), challenge_);
  if (streams_ != 0) link.UseStreams(streams_);
}

void SctpConnection::SetStreams(size_t count) {
  streams_ = count;
  if (link_ != nullptr) link_->UseStreams(count);
}

// --- out ---

bool SctpConnection::Send(uint32_t kind, size_t stream, std::span<const iovec> pieces) {
  const IoResult result = association_->Send({.stream = static_cast<uint16_t>(stream), .ppid = kind, .pieces = pieces});
  if (result.kind == IoResult::Kind::kDone) return true;
  // A failure shows again when what the peer sent before it was read.
  full_ = true;
  return false;
}

bool SctpConnection::Greet() {
  uint8_t hello[Hello::kLength];
  const Bond bond = greeted_with_ ? *greeted_with_ : setting_.processes.BondOf(link_->peer());
  Hello{.from = setting_.processes.own_name(),
        .to = setting_.processes.NameOf(link_->peer()),
        .bond = bond.id,
        .window = setting_.window}
      .Write(bond.secret, challenge_, hello);
  std::ranges::copy(Hello::NonceIn(hello), greeted_by_.begin());
  iovec pieces[kPieces] = {{hello, sizeof(hello)}};
  size_t count = link_->PrepareWrite(std::span(pieces).subspan(1), /*most_frames=*/1);
  count = Clip({pieces + 1, count}, kFirstRecord);
  if (!Send(kGreetingMessage, link_->has_output() ? link_->stream_of_output() : 0, {pieces, 1 + count})) return false;
  offered_ = TotalLength(std::span<const iovec>(pieces + 1, count));
  link_->set_first_is_out(offered_ != 0);
  sent_ = Sent::kGreeting;
  return true;
}

bool SctpConnection::Write() {
  if (!up_ || link_ == nullptr || full_ || waits_turn_ || output_ended_ || end_) return false;
  bool moved = false;
  // The welcome first: what goes with the greeting may answer what came with the peer's.
  if (owes_welcome_) {
    uint8_t byte = 0;
    const iovec piece = {&byte, 1};
    if (!Send(kWelcomeMessage, 0, {&piece, 1})) return false;
    owes_welcome_ = false;
    moved = true;
  }
  if (sent_ == Sent::kNothing) {
    if (!Greet()) return moved;
    moved = true;
  }
  if (!MayWrite()) return moved;
  iovec pieces[kPieces];
  for (int turn = 0; link_->has_output(); ++turn) {
    if (turn == kWritesPerTurn) {
      waits_turn_ = true;
      setting_.owner.OnTurnOver(*this);
      return moved;
    }
    const size_t count = Clip({pieces, link_->PrepareWrite(pieces, /*most_frames=*/1)}, kRecord);
    if (!Send(kFrameMessage, link_->stream_of_output(), {pieces, count})) return moved;
    moved = true;
    link_->Written(TotalLength(std::span<const iovec>(pieces, count)));
  }
  return moved;
}

bool SctpConnection::WriteOn() {
  full_ = waits_turn_ = false;
  return Write();
}

size_t SctpConnection::WriteAtOnce(std::span<const iovec> pieces, uint32_t flow) {
  if (!MayWrite() || full_ || waits_turn_ || output_ended_ || end_) return 0;
  iovec record[kPieces];
  pieces = pieces.first(std::min(pieces.size(), kPieces));
  std::copy(pieces.begin(), pieces.end(), record);
  const size_t count = Clip({record, pieces.size()}, kRecord);
  return Send(kFrameMessage, link_->StreamOf(flow), {record, count})
             ? TotalLength(std::span<const iovec>(record, count))
             : 0;
}

void SctpConnection::EndOutput() {
  if (std::exchange(output_ended_, true)) return;
  association_->Shutdown();
}

void SctpConnection::Abort(const std::string& reason) {
  association_->Abort(reason);
  if (!end_) end_ = ECONNABORTED;
}

// --- in ---

void SctpConnection::OnRing() {
  listening_ = false;
  full_ = false;
}

void SctpConnection::Listen() {
  const bool lent = std::exchange(lent_, false);
  if (end_ || (std::exchange(listening_, true) && !lent)) return;
  association_->SetReading(true);
}

void SctpConnection::Lend() {
  lent_ = true;
  association_->Lend();
}

bool SctpConnection::BreaksTheRules(const char* what) {
  const std::string who = link_ == nullptr ? "an unknown peer" : link_->Describe();
  LogWarning(Format("%s %s; the association is aborted", who.c_str(), what));
  Abort(what);
  end_ = EPROTO;
  return false;
}

bool SctpConnection::Read() {
  bool moved = false;
  for (int turn = 0; !end_; ++turn) {
    if (turn == kReadsPerTurn) {
      setting_.owner.OnTurnOver(*this);
      return moved;
    }
    const iovec into = {setting_.staging.data(), std::min(setting_.staging.size(), kLook)};
    const Received received = association_->Receive({&into, 1});
    switch (received.kind) {
      case Received::Kind::kNothing:
        return moved;
      case Received::Kind::kEvent:
        OnEvent(received.event);
        break;
      case Received::Kind::kMessage:
        if (!OnMessage(received)) return true;
        break;
      case Received::Kind::kEnded:
        end_ = 0;
        break;
      case Received::Kind::kFailed:
        end_ = received.error;
        break;
    }
    moved = true;
  }
  return moved;
}

void SctpConnection::OnEvent(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kUp:
      up_ = true;
      if (!open_) SetStreams(event.streams_out);
      break;
    case Event::Kind::kRestarted:
      // What was sent before is lost.
      if (open_ || sent_ == Sent::kAll) {
        BreaksTheRules("restarted the association");
        break;
      }
      SetStreams(event.streams_out);
      sent_ = Sent::kNothing;
      offered_ = 0;
      if (link_ != nullptr) link_->set_first_is_out(false);
      break;
    case Event::Kind::kPeerShutsDown:
      output_ended_ = true;
      break;
    case Event::Kind::kPathChanged:
      if (TraceEnabled() && link_ != nullptr) {
        Trace(Format("mpi: the path to %s at %s is %s", link_->Describe().c_str(), event.path.host().c_str(),
                     event.path_state == transport::sctp::PathState::kActive     ? "active"
                     : event.path_state == transport::sctp::PathState::kInactive ? "inactive"
                                                                                 : "not confirmed"));
      }
      break;
    case Event::Kind::kRecordAborted:
      BreaksTheRules("withdrew a message that was partly received");
      break;
  }
}

// False: the connection is over, or destroyed.
bool SctpConnection::OnMessage(const Received& received) {
  if (turned_away_) return true;
  const std::span<const uint8_t> bytes(setting_.staging.data(), received.bytes);
  switch (received.info.ppid) {
    case kGreetingMessage:
      if (open_ || !received.info.begins || bytes.size() < Hello::kLength) return BreaksTheRules("sent a greeting at the wrong time");
      if (!OnGreeting(bytes, received.info.stream)) return false;
      break;
    case kWelcomeMessage:
      if (sent_ == Sent::kNothing || bytes.size() != 1 || !received.info.end_of_record)
        return BreaksTheRules("sent a welcome at the wrong time");
      if (sent_ == Sent::kGreeting) OnWelcome();
      return true;
    case kAnotherMessage:
      if (open_ || sent_ != Sent::kGreeting) return BreaksTheRules("answered a greeting that was not sent");
      end_ = ESRCH;
      return false;
    case kFrameMessage:
      if (!open_) return BreaksTheRules("sent messages before it identified itself");
      if (sent_ == Sent::kGreeting) OnWelcome();  // it overtook the welcome
      if (!link_->ReadStaged(bytes, received.info.stream))
        return BreaksTheRules("sent an invalid message");
      break;
    default:
      return BreaksTheRules("sent a message of another protocol");
  }
  return received.info.end_of_record || ReadRest(received.info.stream);
}

bool SctpConnection::IsProven(const Bond& bond, std::span<const uint8_t, Hello::kLength> hello) const {
  if (Hello::IsProven(bond.secret, setting_.challenge, hello)) return true;
  if (sent_ == Sent::kNothing) return false;
  uint8_t challenge[Challenge::kLength];
  Challenge::Write(greeted_by_, setting_.processes.own_name(), challenge);
  return Hello::IsProven(bond.secret, challenge, hello);
}

bool SctpConnection::OnGreeting(std::span<const uint8_t> bytes, size_t stream) {
  const auto said = bytes.first<Hello::kLength>();
  const auto hello = Hello::Read(said);
  ProcessTable& processes = setting_.processes;
  std::optional<Bond> bond;
  if (hello && link_ == nullptr && hello->to != processes.own_name()) return TurnAway();
  if (hello && hello->to == processes.own_name() && hello->from != hello->to)
    bond = processes.BondToEnter(hello->bond, hello->from);
  if (bond && link_ != nullptr && hello->from != processes.NameOf(link_->peer())) bond.reset();
  if (!bond || !IsProven(*bond, said)) {
    const std::string who = hello ? "which claims to be " + hello->from.ToString() + " " : "";
    return BreaksTheRules((who + "did not prove that it belongs to this job or to a connected one" + (bond ? "" : ": they share no such bond")).c_str());
  }
  if (link_ == nullptr) {
    Nonce nonce;
    std::ranges::copy(Hello::NonceIn(said), nonce.begin());
    if (!setting_.owner.OnProven(*this, processes.Enter(*bond, hello->from), nonce)) return false;
  }
  if (link_->is_gone()) return BreaksTheRules("sent data after it was found dead");
  greeted_with_ = *bond;
  open_ = owes_welcome_ = true;
  // The greeting overtook the word of how many streams there are: one there is, for what is sent; what comes may come on any.
  if (streams_ == 0) SetStreams(1);
  setting_.owner.OnOpen(*this);
  link_->Open(hello->window);
  const auto frames = bytes.subspan(Hello::kLength);
  if (!link_->ReadStaged(frames, stream)) return BreaksTheRules("sent an invalid message");
  return true;
}

// Whoever it means had our port before us, and is dead.
bool SctpConnection::TurnAway() {
  uint8_t byte = 0;
  const iovec piece = {&byte, 1};
  turned_away_ = true;
  (void)Send(kAnotherMessage, 0, {&piece, 1});  // there is room
  EndOutput();
  return false;
}

void SctpConnection::OnWelcome() {
  sent_ = Sent::kAll;
  const size_t bytes = std::exchange(offered_, 0);
  if (!link_->first_is_out()) return;
  link_->set_first_is_out(false);
  link_->Written(bytes);
}

// The rest of the message whose first bytes were received, to where it belongs.
bool SctpConnection::ReadRest(size_t stream) {
  iovec pieces[kPieces];
  while (true) {
    const size_t count = link_->PrepareRead(pieces, setting_.staging, stream);
    const Received received = association_->Receive({pieces, count});
    if (received.kind != Received::Kind::kMessage) return BreaksTheRules("sent an incomplete message");
    if (!link_->ReadDone(received.bytes, setting_.staging, stream))
      return BreaksTheRules("sent an invalid message");
    if (received.info.end_of_record) return true;
  }
}

}  // namespace weft::mpi
