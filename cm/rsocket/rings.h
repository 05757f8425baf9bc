#ifndef CM_RSOCKET_RINGS_H_
#define CM_RSOCKET_RINGS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace weft::rsocket {

// A range of a ring: one piece, or two if it wraps. Offsets count from the ring's start.
struct RingRange {
  struct Piece {
    uint32_t offset = 0;
    uint32_t length = 0;
  };
  std::array<Piece, 2> pieces;
  int count() const { return pieces[1].length != 0 ? 2 : 1; }
};

inline RingRange RangeOf(uint32_t size, uint32_t offset, uint32_t length) {
  const uint32_t first = std::min(length, size - offset);
  return {{{{offset, first}, {0, length - first}}}};
}

// The bytes of a send buffer that are in flight. They are taken and released in the same order.
class SendRing {
 public:
  explicit SendRing(uint32_t size) : size_(size), free_(size) {}

  uint32_t free() const { return free_; }
  // `length` is at most free().
  RingRange Take(uint32_t length) {
    const RingRange range = RangeOf(size_, next_, length);
    next_ = static_cast<uint32_t>((uint64_t{next_} + length) % size_);
    free_ -= length;
    return range;
  }
  void GiveBack(uint32_t length) { free_ += length; }

 private:
  uint32_t size_;
  uint32_t free_;
  uint32_t next_ = 0;
};

// The content of a receive buffer. The peer is granted parts of it, half the buffer at a time, and fills them in order
// with messages. The program reads the messages in order. Each byte cycles through granted, readable, free, and granted
// again.
class ReceiveRing {
 public:
  // `size` is even. The first half is already granted: ConnectData tells the peer about it. `messages`: how many may
  // wait to be read.
  ReceiveRing(uint32_t size, uint32_t messages)
      : size_(size), granted_(size / 2), free_(size / 2), next_grant_(size / 2), lengths_(messages) {}

  // A message of `length` bytes arrived. Returns false if the peer was not allowed to send it.
  bool OnMessage(uint32_t length) {
    if (length > granted_ || waiting_ == lengths_.size()) return false;
    if (length == 0) {
      ++read_messages_;
      return true;
    }
    lengths_[(oldest_ + waiting_++) % lengths_.size()] = length;
    granted_ -= length;
    readable_ += length;
    return true;
  }

  uint32_t readable() const { return readable_; }
  // The range of `length` bytes that begins `skip` bytes after the first unread one. `skip` + `length` is at most
  // readable().
  RingRange Peek(uint32_t skip, uint32_t length) const {
    return RangeOf(size_, static_cast<uint32_t>((uint64_t{read_} + skip) % size_), length);
  }
  // The program has read `length` bytes.
  void Consume(uint32_t length) {
    read_ = static_cast<uint32_t>((uint64_t{read_} + length) % size_);
    readable_ -= length;
    free_ += length;
    while (length > 0) {
      uint32_t& first = lengths_[oldest_];
      const uint32_t part = std::min(first, length);
      first -= part;
      length -= part;
      if (first != 0) break;
      oldest_ = (oldest_ + 1) % lengths_.size();
      --waiting_;
      ++read_messages_;
    }
  }

  // Number of messages read so far, modulo 2^16.
  uint16_t read_messages() const { return read_messages_; }
  // Whether half of the buffer is free and can be granted. TakeGrant() returns its offset; it is then granted.
  bool can_grant() const { return free_ >= size_ / 2; }
  uint32_t half() const { return size_ / 2; }
  uint32_t TakeGrant() {
    const uint32_t offset = next_grant_;
    next_grant_ = (next_grant_ + size_ / 2) % size_;
    free_ -= size_ / 2;
    granted_ += size_ / 2;
    return offset;
  }

 private:
  uint32_t size_;
  uint32_t granted_;
  uint32_t readable_ = 0;
  uint32_t free_;
  uint32_t next_grant_;
  uint32_t read_ = 0;
  std::vector<uint32_t> lengths_;  // unread bytes of each waiting message
  size_t oldest_ = 0;
  size_t waiting_ = 0;
  uint16_t read_messages_ = 0;
};

}  // namespace weft::rsocket

#endif  // CM_RSOCKET_RINGS_H_
