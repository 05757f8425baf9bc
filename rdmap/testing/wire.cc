#include "rdmap/testing/wire.h"

#include "base/check.h"

namespace weft::rdmap::testing {

bool Wire::HasRoom(size_t payload_length, size_t payload_pieces) const {
  WEFT_CHECK(payload_length < max_ulpdu_ && payload_pieces <= 64);
  return waiting_.size() < room_;
}

void Wire::Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) {
  WEFT_CHECK(HasRoom(0, 0));
  Waiting segment;
  segment.front.assign(header.begin(), header.end());
  size_t length = header.size();
  for (const iovec& piece : payload) {
    WEFT_CHECK(piece.iov_len != 0);
    length += piece.iov_len;
    if (volatile_payload) {
      const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
      segment.front.insert(segment.front.end(), bytes, bytes + piece.iov_len);
    } else {
      segment.payload.push_back(piece);
    }
  }
  WEFT_CHECK(length <= max_ulpdu_);
  appended_ += length;
  segment.end = appended_;
  waiting_.push_back(std::move(segment));
}

void Wire::AppendAcknowledging(ByteSpan header, std::span<const iovec> payload, bool volatile_payload, uint8_t acknowledged) {
  WEFT_CHECK(carries_acknowledgements_ && acknowledged != 0);
  Append(header, payload, volatile_payload);
  waiting_.back().acknowledged = acknowledged;
}

Bytes Wire::Take() {
  WEFT_CHECK(!waiting_.empty());
  Bytes segment = std::move(waiting_.front().front);
  for (const iovec& piece : waiting_.front().payload) {
    const auto* bytes = static_cast<const uint8_t*>(piece.iov_base);
    segment.insert(segment.end(), bytes, bytes + piece.iov_len);
  }
  taken_ = waiting_.front().end;
  taken_acknowledged_ = waiting_.front().acknowledged;
  waiting_.pop_front();
  return segment;
}

bool Move(Endpoint& from, Endpoint& to) {
  bool moved = from.stream.Transmit(from.wire);
  while (!from.wire.empty()) {
    moved = true;
    const Bytes segment = from.wire.Take();
    from.stream.OnTransmitted(from.wire.taken());
    Deliver(to.stream, segment, from.wire.taken_acknowledged());
    from.stream.Transmit(from.wire);
  }
  return moved;
}

void Exchange(Endpoint& a, Endpoint& b) {
  while (static_cast<int>(Move(a, b)) + static_cast<int>(Move(b, a)) != 0) {
  }
}

}  // namespace weft::rdmap::testing
