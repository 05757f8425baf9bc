#include "transport/sctp/usrsctp/outbox.h"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/crc32c.h"

namespace weft::transport::sctp {
namespace {

constexpr size_t kBatch = 32;                 // packets of one system call
constexpr size_t kMostOutgoing = 512 * 1024;  // bytes that wait for it
constexpr size_t kCommonHeader = 12, kTagEnd = 8, kChecksumOffset = 8;  // RFC 9260 section 3.1
constexpr uint8_t kData = 0, kInit = 1, kInitAck = 2, kAbort = 6, kShutdownComplete = 14;

// Chunks that end an association, or begin one, are alone, or last.
bool MayGrow(uint8_t first_chunk) {
  return first_chunk != kInit && first_chunk != kInitAck && first_chunk != kAbort && first_chunk != kShutdownComplete;
}

}  // namespace

uint8_t* Outbox::Room(size_t bytes) {
  if (outgoing_.size() >= 2 * kBatch || used_ + bytes > kMostOutgoing) Flush();
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

void Outbox::Add(const SocketAddress& from, const SocketAddress& to, DatagramSocket& socket, std::span<const uint8_t> packet) {
  if (Join(from, to, socket, packet)) return;
  Outgoing& out = outgoing_.emplace_back();
  out.from = from;
  out.to = to;
  out.offset = static_cast<size_t>(packet.data() - bytes_.data());
  out.length = packet.size();
  out.socket = &socket;
  used_ = out.offset + out.length;
}

void Outbox::Flush() {
  for (const Outgoing& out : outgoing_) {
    uint8_t* const packet = &bytes_[out.offset];
    std::memset(packet + kChecksumOffset, 0, 4);
    StoreCrc32c(packet + kChecksumOffset, Crc32c({packet, out.length}));
  }
  for (size_t next = 0; next < outgoing_.size();) {
    DatagramSocket* const socket = outgoing_[next].socket;
    OutgoingDatagram datagrams[kBatch];
    iovec pieces[kBatch];
    size_t count = 0;
    for (; count < kBatch && next + count < outgoing_.size() && outgoing_[next + count].socket == socket; ++count) {
      const Outgoing& out = outgoing_[next + count];
      pieces[count] = {.iov_base = &bytes_[out.offset], .iov_len = out.length};
      datagrams[count].to = out.to;
      datagrams[count].from = out.from;
      datagrams[count].pieces = {&pieces[count], 1};
    }
    int error = 0;
    const size_t sent = socket->Send({datagrams, count}, &error);
    observer_.OnSent(sent);
    next += sent;
    if (sent < count) observer_.OnNotSent(outgoing_[next++].to, error);  // lost: SCTP sends it again, on another path if need be
  }
  outgoing_.clear();
  used_ = 0;
}

}  // namespace weft::transport::sctp
