#include "transport/sctp/usrsctp/outbox.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/crc32c.h"
#include "transport/sctp/usrsctp/header_sizes.h"

namespace weft::transport::sctp {
namespace {

constexpr size_t kSendBatch = 64;                 // packets of one system call
constexpr size_t kMostOutgoing = 512 * 1024;  // bytes that wait for it
constexpr size_t kTagEnd = 8;  // RFC 9260 section 3.1
constexpr uint8_t kData = 0, kInit = 1, kInitAck = 2, kSack = 3, kAbort = 6, kShutdownComplete = 14;

// Chunks that end an association, or begin one, are alone, or last.
bool MayGrow(uint8_t first_chunk) {
  return first_chunk != kInit && first_chunk != kInitAck && first_chunk != kAbort && first_chunk != kShutdownComplete;
}

bool IsSackAlone(std::span<const uint8_t> packet) {
  return packet.size() > kCommonHeader + 4 && packet[kCommonHeader] == kSack &&
         (size_t{packet[kCommonHeader + 2]} << 8 | packet[kCommonHeader + 3]) == packet.size() - kCommonHeader;
}

}  // namespace

uint8_t* Outbox::Room(size_t bytes) {
  if (outgoing_.size() >= 2 * kSendBatch || used_ + bytes > kMostOutgoing) Flush();
  if (bytes > kMostOutgoing) return nullptr;
  if (bytes_.empty()) bytes_.resize(kMostOutgoing);
  return &bytes_[used_];
}

void Outbox::LimitJoined(size_t bytes) { most_joined_ = std::min(most_joined_, bytes); }

// DATA behind whatever may stand in front of it: chunks of control come first in a packet.
bool Outbox::Join(const SocketAddress& from, const SocketAddress& to, const DatagramSocket& socket, std::span<const uint8_t> packet) {
  if (outgoing_.empty() || packet.size() <= kCommonHeader || packet[kCommonHeader] != kData) return false;
  Outgoing& last = outgoing_.back();
  const size_t length = last.length + packet.size() - kCommonHeader;
  if (length > most_joined_ || last.length % 4 != 0 || last.socket != &socket) return false;
  uint8_t* const before = &bytes_[last.offset];
  if (std::memcmp(before, packet.data(), kTagEnd) != 0 || !MayGrow(before[kCommonHeader])) return false;
  if (!(last.to == to) || !(last.from == from)) return false;
  std::memmove(before + last.length, packet.data() + kCommonHeader, packet.size() - kCommonHeader);
  last.length = length;
  used_ = last.offset + length;
  return true;
}

// A SACK says all that the one before it said. Of each packet or two that come in a burst there is one.
void Outbox::Supersede(const SocketAddress& from, const SocketAddress& to, std::span<const uint8_t> packet) {
  if (!IsSackAlone(packet)) return;
  const size_t before = std::exchange(last_sack_, outgoing_.size());
  if (before >= outgoing_.size()) return;
  Outgoing& old = outgoing_[before];
  const std::span<const uint8_t> bytes(&bytes_[old.offset], old.length);
  if (!IsSackAlone(bytes) || std::memcmp(bytes.data(), packet.data(), kTagEnd) != 0) return;
  if (old.to == to && old.from == from) old.length = 0;
}

void Outbox::Add(const SocketAddress& from, const SocketAddress& to, DatagramSocket& socket, std::span<const uint8_t> packet) {
  if (Join(from, to, socket, packet)) {
    outgoing_.back().damaged |= std::exchange(damage_next_, false);
    return;
  }
  Supersede(from, to, packet);
  Outgoing& out = outgoing_.emplace_back();
  out.from = from;
  out.to = to;
  out.offset = static_cast<size_t>(packet.data() - bytes_.data());
  out.length = packet.size();
  out.socket = &socket;
  out.damaged = std::exchange(damage_next_, false);
  used_ = out.offset + out.length;
}

// In concurrent transfer paths take turns: one path's packets need not wait for the other's, and those that go to one
// place one after the other cost less.
void Outbox::Order() {
  order_.clear();
  for (Outgoing& first : outgoing_) {
    if (first.ordered || first.length == 0) continue;
    for (Outgoing* out = &first; out != outgoing_.data() + outgoing_.size(); ++out) {
      if (out->ordered || out->length == 0 || out->socket != first.socket || !(out->to == first.to) || !(out->from == first.from)) continue;
      out->ordered = true;
      order_.push_back(out);
    }
  }
}

void Outbox::Flush() {
  for (const Outgoing& out : outgoing_) {
    if (out.length == 0) continue;
    uint8_t* const packet = &bytes_[out.offset];
    std::memset(packet + kChecksumOffset, 0, 4);
    StoreCrc32c(packet + kChecksumOffset, Crc32c({packet, out.length}));
    if (out.damaged) [[unlikely]] packet[out.length - 1] ^= 1;
  }
  Order();
  for (size_t next = 0; next < order_.size();) {
    DatagramSocket* const socket = order_[next]->socket;
    OutgoingDatagram datagrams[kSendBatch];
    iovec pieces[kSendBatch];
    size_t count = 0;
    for (; count < kSendBatch && next + count < order_.size() && order_[next + count]->socket == socket; ++count) {
      const Outgoing& out = *order_[next + count];
      pieces[count] = {.iov_base = &bytes_[out.offset], .iov_len = out.length};
      datagrams[count].to = out.to;
      datagrams[count].from = out.from;
      datagrams[count].pieces = {&pieces[count], 1};
    }
    int error = 0;
    const size_t sent = socket->Send({datagrams, count}, &error);
    observer_.OnSent(sent);
    for (size_t i = 0; tapped_ && i < sent; ++i) {
      const Outgoing& out = *order_[next + i];
      observer_.OnPacket(out.from, out.to, *socket, {&bytes_[out.offset], out.length});
    }
    next += sent;
    if (sent < count) observer_.OnNotSent(order_[next++]->to, error);  // lost: SCTP sends it again, on another path if need be
  }
  outgoing_.clear();
  last_sack_ = kNone;
  used_ = 0;
}

}  // namespace weft::transport::sctp
