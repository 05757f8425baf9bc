#include "mpi_hybrid/p2p/impi/impi_link.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/check.h"
#include "mpi_hybrid/p2p/request/external_count.h"

namespace weft::mpi {
namespace {

// Of which the engine's frames and the counts of statuses can tell.
constexpr uint64_t kMostLength = kExternalCount;

}  // namespace

ImpiLink::ImpiLink(Link& link, impi::Endpoint& endpoint, impi::PeerId peer, const ImpiContexts& contexts)
    : link_(link), endpoint_(endpoint), peer_(peer), contexts_(contexts) {}

// --- out ---

void ImpiLink::Collect() {
  while (link_.has_output()) {
    const std::span<const uint8_t> offer = link_.Offer();
    std::vector<uint8_t> body;
    std::optional<FrameHeader> header;
    for (size_t left = link_.left_of_frame(); left != 0;) {
      std::array<iovec, 8> pieces;
      const size_t count = link_.PrepareWrite(pieces, /*most_frames=*/1);
      size_t taken = 0;
      for (size_t i = 0; i < count; ++i) {
        const std::span bytes(static_cast<const uint8_t*>(pieces[i].iov_base), pieces[i].iov_len);
        taken += bytes.size();
        if (header) {
          body.insert(body.end(), bytes.begin(), bytes.end());
          continue;
        }
        WEFT_CHECK(bytes.size() == FrameHeader::kLength);  // nobody else writes a part of a frame
        header = FrameHeader::Parse(bytes.first<FrameHeader::kLength>());
        WEFT_CHECK(header.has_value());
        body.reserve(left - taken);
      }
      left -= taken;
      link_.Written(taken);
    }
    OnFrame(*header, std::move(body), offer);
  }
}

void ImpiLink::OnFrame(const FrameHeader& header, std::vector<uint8_t> body, std::span<const uint8_t> offer) {
  switch (header.kind) {
    case FrameKind::kEager:
    case FrameKind::kRequest:
      return Start(header, std::move(body), offer);
    case FrameKind::kClear:
      return OnClear(header);
    case FrameKind::kMatched:
      return OnMatched(header.send_id);
    case FrameKind::kCancel:
      return OnCancel(header.send_id);
    case FrameKind::kGoodbye:
      goodbye_ = true;
      return;
    case FrameKind::kCancelled:  // the answer to Withdraw
      refused_ = (header.flags & kFlagRefused) != 0;
      return;
    case FrameKind::kRevoked:
      return OnRevoked(header.send_id);
    case FrameKind::kCredit:
    case FrameKind::kNote:
    case FrameKind::kFetched:
      return;
    case FrameKind::kData:
      break;  // nothing is cleared but with 0 bytes
  }
  WEFT_CHECK(false);
}

void ImpiLink::Start(const FrameHeader& header, std::vector<uint8_t> body, std::span<const uint8_t> offer) {
  const bool announced = header.kind == FrameKind::kRequest;
  const std::optional<uint64_t> context = contexts_.OnWire(header.context);
  if ((header.flags & kFlagExcuse) != 0 || !context) {
    // Nobody waits for it at the other end. It is over here.
    if (announced) return Feed({.kind = FrameKind::kClear, .send_id = header.send_id});
    if ((header.flags & kFlagSynchronous) != 0) Feed({.kind = FrameKind::kMatched, .send_id = header.send_id});
    return Feed({.kind = FrameKind::kCredit, .credit = static_cast<uint32_t>(Link::CostOf(header.length))});
  }
  Sending sending;
  sending.announced = announced;
  sending.synchronous = announced || (header.flags & kFlagSynchronous) != 0;
  if (announced) {
    WEFT_CHECK(offer.size() == header.length);
    sending.bytes = offer;
  } else {
    sending.copy = std::move(body);
    sending.bytes = sending.copy;
    sending.credit = Link::CostOf(header.length);
  }
  if (sending.synchronous) sending.engine_id = header.send_id;
  const impi::SendId id =
      endpoint_.Send(peer_, {.context = *context, .rank = header.source, .tag = header.tag, .length = header.length, .count = header.length}, sending.synchronous);
  if (sending.engine_id != 0) by_engine_id_.emplace(sending.engine_id, id);
  sends_.emplace(id, std::move(sending));
}

std::optional<ImpiLink::Packet> ImpiLink::Next() {
  const std::optional<impi::Outgoing> packet = endpoint_.Next(peer_);
  if (!packet) return std::nullopt;
  Packet next{*packet, {}};
  if (packet->length != 0) next.data = sends_.at(packet->send).bytes.subspan(packet->offset, packet->length);
  return next;
}

void ImpiLink::Sent(const impi::Outgoing& packet) {
  if (packet.type != impi::PacketType::kData && packet.type != impi::PacketType::kDataSync) return;
  if (!packet.last) return;
  sends_.at(packet.send).out = true;
  EndIfOver(packet.send);
}

void ImpiLink::EndIfOver(impi::SendId id) {
  const auto found = sends_.find(id);
  Sending& sending = found->second;
  if (!sending.out) return;
  if (const int64_t credit = std::exchange(sending.credit, 0); credit != 0) {
    sending.copy = {};
    sending.bytes = {};
    Feed({.kind = FrameKind::kCredit, .credit = static_cast<uint32_t>(credit)});
  }
  if (sending.synchronous && !sending.matched) return;
  const uint32_t engine_id = sending.engine_id;
  const FrameKind end = sending.announced ? FrameKind::kClear : FrameKind::kMatched;
  sends_.erase(found);
  endpoint_.Release(id);
  if (engine_id == 0) return;
  by_engine_id_.erase(engine_id);
  Feed({.kind = end, .send_id = engine_id});
}

void ImpiLink::OnCancel(uint32_t engine_id) {
  const auto found = by_engine_id_.find(engine_id);
  if (found == by_engine_id_.end()) return;  // it is over, and the engine knows
  const impi::SendId id = found->second;
  switch (endpoint_.Cancel(id)) {
    case impi::CancelOutcome::kAsked:
      return;
    case impi::CancelOutcome::kTooLate:
      return Feed({.kind = FrameKind::kCancelled, .flags = kFlagRefused, .send_id = engine_id});
    case impi::CancelOutcome::kCancelled:
      break;
  }
  const int64_t credit = sends_.at(id).credit;
  sends_.erase(id);
  by_engine_id_.erase(found);
  endpoint_.Release(id);
  Feed({.kind = FrameKind::kCancelled, .credit = static_cast<uint32_t>(credit), .send_id = engine_id});
}

// --- in ---

void ImpiLink::OnClear(const FrameHeader& header) {
  Arriving& arriving = *ids_.Find(header.send_id);
  arriving.receive_id = header.receive_id;
  arriving.missing = header.length;
  const impi::Matched matched = endpoint_.Match(arriving.message, header.length);
  const std::vector<uint8_t> stored = std::exchange(arriving.stored, {});
  Give(arriving, std::span(stored).first(static_cast<size_t>(std::min<uint64_t>(stored.size(), header.length))));
  if (matched.whole) Forget(arriving.message);
}

void ImpiLink::OnMatched(uint32_t id) {
  const Arriving& arriving = *ids_.Find(id);
  const impi::MessageId message = arriving.message;
  WEFT_CHECK(endpoint_.Match(message, endpoint_.MessageOf(message).envelope.length).whole);
  Forget(message);
}

// The engine has dropped the message, because the program revoked its communicator. What still comes of it is cut off.
void ImpiLink::OnRevoked(uint32_t id) {
  const impi::MessageId message = ids_.Find(id)->message;
  if (endpoint_.Match(message, 0).whole) Forget(message);
}

void ImpiLink::Give(Arriving& arriving, std::span<const uint8_t> data) {
  arriving.missing -= data.size();
  if (!data.empty()) Feed({.kind = FrameKind::kData, .receive_id = arriving.receive_id, .length = data.size()}, data);
}

std::optional<impi::PacketError> ImpiLink::OnPacket(std::span<const uint8_t, impi::Packet::kSize> header, std::span<const uint8_t> data) {
  // What the engine matched before this packet counts as matched. A matched probe, of which it tells nobody, is asked for.
  Collect();
  if (const auto message = endpoint_.WithdrawnBy(header); message && !Withdraw(*message)) endpoint_.Claim(*message);
  const auto result = endpoint_.OnHeader(header);
  if (!result.ok()) return result.error();
  const impi::Event& event = *result;
  switch (event.kind) {
    case impi::Event::Kind::kNone:
    case impi::Event::Kind::kDropped:
      break;
    case impi::Event::Kind::kMessage:
      if (auto wrong = OnMessage(event, data)) return wrong;
      break;
    case impi::Event::Kind::kPart:
      OnPart(event, data);
      break;
    case impi::Event::Kind::kWithdrawn:
      OnWithdrawn(event.message);
      break;
    case impi::Event::Kind::kSynchronized:
      sends_.at(event.send).matched = true;
      EndIfOver(event.send);
      break;
    case impi::Event::Kind::kCancelled: {
      const uint32_t engine_id = sends_.at(event.send).engine_id;
      const int64_t credit = sends_.at(event.send).credit;
      sends_.erase(event.send);
      by_engine_id_.erase(engine_id);
      endpoint_.Release(event.send);
      Feed({.kind = FrameKind::kCancelled, .credit = static_cast<uint32_t>(credit), .send_id = engine_id});
      break;
    }
    case impi::Event::Kind::kNotCancelled:
      if (const auto found = sends_.find(event.send); found != sends_.end())
        Feed({.kind = FrameKind::kCancelled, .flags = kFlagRefused, .send_id = found->second.engine_id});
      break;
  }
  Collect();
  return std::nullopt;
}

std::optional<impi::PacketError> ImpiLink::OnMessage(const impi::Event& event, std::span<const uint8_t> data) {
  const impi::Envelope& envelope = endpoint_.MessageOf(event.message).envelope;
  if (envelope.length >= kMostLength) {
    const impi::ProcessName& process = endpoint_.NameOf(peer_);
    return impi::PacketError{.process = process,
                             .field = "pk_msglen",
                             .text = impi::TextOf(process) + " sent DATASYNC: pk_msglen is " + std::to_string(envelope.length) + "; messages have less than " +
                                     std::to_string(kMostLength) + " bytes"};
  }
  auto owned = std::make_unique<Arriving>();
  Arriving& arriving = *owned;
  arriving.message = event.message;
  arriving.id = ids_.Add(&arriving);
  arriving.stored.assign(data.begin(), data.end());
  arriving_.emplace(event.message, std::move(owned));
  const std::optional<uint32_t> context = contexts_.Here(envelope.context);
  if (!context) {
    waiting_.push_back(event.message);
    return std::nullopt;
  }
  if (!contexts_.HasRank(*context, envelope.rank, link_.peer())) {
    const impi::ProcessName& process = endpoint_.NameOf(peer_);
    return impi::PacketError{.process = process,
                             .field = "pk_lsrank",
                             .text = impi::TextOf(process) + " sent DATA: pk_lsrank is " + std::to_string(envelope.rank) +
                                     ", which is not its rank in the communicator " + std::to_string(envelope.context)};
  }
  Deliver(arriving, *context);
  return std::nullopt;
}

void ImpiLink::OnNewContext() {
  for (size_t left = waiting_.size(); left != 0; --left) {
    const impi::MessageId message = waiting_.front();
    waiting_.pop_front();
    const impi::Envelope& envelope = endpoint_.MessageOf(message).envelope;
    const std::optional<uint32_t> context = contexts_.Here(envelope.context);
    // One with another rank than its sender's is never received; nothing can be said to the sender any more.
    if (!context || !contexts_.HasRank(*context, envelope.rank, link_.peer()))
      waiting_.push_back(message);
    else
      Deliver(*arriving_.at(message), *context);
  }
  Collect();
}

void ImpiLink::Deliver(Arriving& arriving, uint32_t context) {
  const impi::Envelope envelope = endpoint_.MessageOf(arriving.message).envelope;
  FrameHeader header{.kind = FrameKind::kRequest, .flags = kFlagExternal, .context = context, .tag = envelope.tag, .source = envelope.rank, .send_id = arriving.id, .length = envelope.length};
  arriving.delivered = true;
  arriving.announced = arriving.stored.size() < envelope.length;
  if (arriving.announced) return Feed(header);
  header.kind = FrameKind::kEager;
  header.flags |= kFlagSynchronous;
  const std::vector<uint8_t> whole = std::exchange(arriving.stored, {});
  Feed(header, whole);
}

void ImpiLink::OnPart(const impi::Event& event, std::span<const uint8_t> data) {
  Give(*arriving_.at(event.message), data.first(event.keep));
  if (event.last) Forget(event.message);
}

bool ImpiLink::Withdraw(impi::MessageId message) {
  const Arriving& arriving = *arriving_.at(message);
  if (!arriving.delivered) return true;
  Feed({.kind = FrameKind::kCancel, .send_id = arriving.id});
  Collect();
  return !refused_;
}

void ImpiLink::OnWithdrawn(impi::MessageId message) {
  std::erase(waiting_, message);
  Forget(message);
}

void ImpiLink::Forget(impi::MessageId message) {
  const auto found = arriving_.find(message);
  ids_.Remove(found->second->id);
  arriving_.erase(found);
}

void ImpiLink::OnFini() { Feed({.kind = FrameKind::kGoodbye}); }

void ImpiLink::Feed(const FrameHeader& header, std::span<const uint8_t> body) {
  std::array<uint8_t, FrameHeader::kLength> bytes;
  header.SerializeTo(bytes);
  WEFT_CHECK(link_.ReadStaged(bytes));
  if (!body.empty()) WEFT_CHECK(link_.ReadStaged(body));
}

}  // namespace weft::mpi
