#include "sim/net/connection.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/log.h"

namespace weft::sim {
namespace {

size_t Total(std::span<const iovec> parts) {
  size_t total = 0;
  for (const iovec& part : parts) total += part.iov_len;
  return total;
}

}  // namespace

VirtualConnection::VirtualConnection(Environment& environment, uint64_t seed, const SocketAddress& initiator,
                       const SocketAddress& acceptor, const LinkFaults& forward, const LinkFaults& back)
    : environment_(environment),
      started_(environment.clock.Now()),
      sides_{{.address = initiator, .link = forward, .random = Random(seed)},
             {.address = acceptor, .link = back, .random = Random(~seed)}} {}

void VirtualConnection::At(Time when, std::function<void()> work) {
  environment_.clock.At(when, [self = shared_from_this(), work = std::move(work)] { work(); });
}

void VirtualConnection::Note(End from, const std::string& what) const {
  if (!environment_.trace) return;
  environment_.trace(sides_[from].address.ToString() + " > " + sides_[Other(from)].address.ToString() + " " + what);
}

Time VirtualConnection::ArrivalTime(Side& from) {
  const LinkFaults& link = from.link;
  Time arrival = environment_.clock.Now() + link.delay;
  if (link.jitter > Duration::zero()) arrival += Duration(from.random.Between(0, link.jitter.count()));
  Time stall = started_ + link.stall_at;
  if (arrival >= stall && arrival < stall + link.stall_for) arrival = stall + link.stall_for;
  return from.last_arrival = std::max(arrival, from.last_arrival);
}

void VirtualConnection::Establish() {
  sides_[kAcceptor].state = State::kEstablished;
  At(ArrivalTime(sides_[kAcceptor]), [this] {
    Side& initiator = sides_[kInitiator];
    if (initiator.state != State::kConnecting) return;
    initiator.state = State::kEstablished;
    Note(kInitiator, "established");
    environment_.changed(*this, kInitiator);
  });
  for (End end : {kInitiator, kAcceptor}) {
    const LinkFaults& link = sides_[end].link;
    if (link.cut_after) At(started_ + *link.cut_after, [this, how = link.cut] { Break(how); });
  }
}

void VirtualConnection::FailConnect(int error, Duration delay) {
  At(environment_.clock.Now() + delay, [this, error] {
    if (sides_[kInitiator].state == State::kConnecting) Fail(kInitiator, error);
  });
}

void VirtualConnection::Fail(End end, int error) {
  Side& side = sides_[end];
  if (side.state == State::kFailed) return;
  side.state = State::kFailed;
  side.error = error;
  Note(end, Format("fails with errno %d", error));
  if (!side.closed) environment_.changed(*this, end);
}

void VirtualConnection::Break(LinkFaults::Cut how) {
  if (how == LinkFaults::Cut::kReset) {
    Fail(kInitiator, ECONNRESET);
    Fail(kAcceptor, ECONNRESET);
    return;
  }
  Note(kInitiator, "vanishes from now on, both ways");
  for (End end : {kInitiator, kAcceptor}) {
    sides_[end].vanishing = true;
    if (Unacknowledged(end) > 0) GiveUpLater(end);
  }
}

void VirtualConnection::GiveUpLater(End end) {
  Duration patience = sides_[end].link.give_up_after;
  if (patience > Duration::zero()) At(environment_.clock.Now() + patience, [this, end] { Fail(end, ETIMEDOUT); });
}

size_t VirtualConnection::Unacknowledged(End from) const {
  // Bytes on their way, and bytes that the other end has not read.
  return static_cast<size_t>(sides_[from].written - sides_[from].arrived) + sides_[Other(from)].unread.size();
}

size_t VirtualConnection::Limit(Side& side, size_t bytes) {
  bytes = std::min(bytes, side.link.most_per_call);
  return side.link.random_io && bytes > 1 ? side.random.Between(1, bytes) : bytes;
}

IoResult VirtualConnection::Read(End end, std::span<const iovec> into) {
  Side& side = sides_[end];
  size_t wanted = Total(into);
  if (side.state == State::kFailed && side.error == ECONNABORTED) return {IoResult::Kind::kFailed, 0, side.error};
  if (wanted == 0) return {};
  if (side.unread.empty()) {
    if (side.state == State::kFailed) return {IoResult::Kind::kFailed, 0, side.error};
    if (side.fin_received) return {IoResult::Kind::kEndOfStream, 0, 0};
    return {};
  }
  size_t count = Limit(side, std::min(wanted, side.unread.size())), left = count;
  for (const iovec& part : into) {
    size_t taken = std::min(part.iov_len, left);
    std::copy_n(side.unread.begin(), taken, static_cast<uint8_t*>(part.iov_base));
    side.unread.erase(side.unread.begin(), side.unread.begin() + static_cast<ptrdiff_t>(taken));
    left -= taken;
  }
  // The window opens a delay later.
  End writer = Other(end);
  At(environment_.clock.Now() + side.link.delay, [this, writer] {
    if (!sides_[writer].closed) environment_.changed(*this, writer);
  });
  return {IoResult::Kind::kDone, count, 0};
}

IoResult VirtualConnection::Write(End end, std::span<const iovec> from) {
  Side& side = sides_[end];
  if (side.state == State::kFailed) {
    return {IoResult::Kind::kFailed, 0, side.error == ECONNRESET ? EPIPE : side.error};
  }
  if (side.fin_sent) return {IoResult::Kind::kFailed, 0, EPIPE};
  if (side.state == State::kConnecting) return {};
  size_t used = Unacknowledged(end);
  size_t room = side.link.buffer > used ? side.link.buffer - used : 0;
  size_t count = std::min(Total(from), room);
  if (count == 0) return {};
  count = Limit(side, count);

  std::vector<uint8_t> bytes;
  bytes.reserve(count);
  for (const iovec& part : from) {
    const auto* start = static_cast<const uint8_t*>(part.iov_base);
    bytes.insert(bytes.end(), start, start + std::min(part.iov_len, count - bytes.size()));
  }
  Send(end, std::move(bytes));
  return {IoResult::Kind::kDone, count, 0};
}

void VirtualConnection::Corrupt(Side& from, std::vector<uint8_t>& segment) {
  uint64_t at = from.link.corrupt_byte - from.written;
  if (from.link.corrupt_byte >= from.written && at < segment.size()) segment[at] ^= 1 << from.random.Between(0, 7);
  if (from.link.corrupt_probability > 0 && from.random.Chance(from.link.corrupt_probability)) {
    segment[from.random.Between(0, segment.size() - 1)] ^= 1 << from.random.Between(0, 7);
  }
}

void VirtualConnection::Send(End from, std::vector<uint8_t> bytes) {
  Side& side = sides_[from];
  for (size_t at = 0; at < bytes.size();) {
    size_t length = side.random.Between(side.link.shortest_segment, side.link.longest_segment);
    length = std::min(length, bytes.size() - at);
    auto start = bytes.begin() + static_cast<ptrdiff_t>(at);
    std::vector<uint8_t> segment(start, start + static_cast<ptrdiff_t>(length));
    Corrupt(side, segment);
    side.written += length;
    at += length;
    At(ArrivalTime(side), [this, from, segment = std::move(segment)]() mutable { Arrive(from, std::move(segment)); });
  }
  if (side.vanishing) GiveUpLater(from);
}

void VirtualConnection::Arrive(End from, std::vector<uint8_t> bytes) {
  Side& writer = sides_[from];
  End to = Other(from);
  Side& reader = sides_[to];
  if (writer.vanishing) return;
  if (reader.closed || reader.state == State::kFailed) {
    if (reader.closed) SendReset(to);
    return;
  }
  uint64_t until_cut = writer.link.cut_after_bytes - std::min(writer.link.cut_after_bytes, writer.arrived);
  bool cut = bytes.size() >= until_cut && writer.link.cut_after_bytes != LinkFaults::kNowhere;
  if (cut) bytes.resize(until_cut);
  writer.arrived += bytes.size();
  reader.unread.insert(reader.unread.end(), bytes.begin(), bytes.end());
  Note(from, Format("%zu bytes", bytes.size()));
  if (!bytes.empty()) environment_.changed(*this, to);
  if (cut) Break(writer.link.cut);
}

void VirtualConnection::ShutdownWrite(End end) {
  Side& side = sides_[end];
  if (side.fin_sent || side.state != State::kEstablished) return;
  side.fin_sent = true;
  At(ArrivalTime(side), [this, end] { ArriveFin(end); });
}

void VirtualConnection::ArriveFin(End from) {
  End to = Other(from);
  if (sides_[from].vanishing || sides_[to].state == State::kFailed) return;
  Note(from, "FIN");
  sides_[to].fin_received = true;
  if (!sides_[to].closed) environment_.changed(*this, to);
}

// Arrives behind what was sent before, or instead of it: TCP allows both.
void VirtualConnection::SendReset(End from) {
  Side& side = sides_[from];
  bool overtakes = side.random.Chance(0.5);
  Time arrival = overtakes ? environment_.clock.Now() + side.link.delay : ArrivalTime(side);
  At(arrival, [this, from, overtakes] {
    if (sides_[from].vanishing) return;
    Note(from, "RST");
    if (overtakes) sides_[Other(from)].unread.clear();
    Fail(Other(from), ECONNRESET);
  });
}

void VirtualConnection::Abort(End end) {
  Side& side = sides_[end];
  // Also while the initiator is connecting: the acceptor may exist already.
  if (side.state != State::kFailed && sides_[kAcceptor].state == State::kEstablished) SendReset(end);
  side.unread.clear();
  Fail(end, ECONNABORTED);
  side.error = ECONNABORTED;
}

void VirtualConnection::Close(End end) {
  if (sides_[end].state == State::kConnecting) Abort(end);
  ShutdownWrite(end);
  sides_[end].closed = true;
  sides_[end].unread.clear();
}

int VirtualConnection::ConnectError(End end) const {
  const Side& side = sides_[end];
  return side.state == State::kConnecting ? EINPROGRESS : side.state == State::kFailed ? side.error : 0;
}

Interest VirtualConnection::Ready(End end) const {
  const Side& side = sides_[end];
  if (side.state == State::kFailed) return {.read = true, .write = true};
  if (side.state == State::kConnecting) return {};
  bool both_ended = side.fin_sent && side.fin_received;
  return {.read = !side.unread.empty() || side.fin_received,
          .write = both_ended || Unacknowledged(end) < side.link.buffer};
}

}  // namespace weft::sim
