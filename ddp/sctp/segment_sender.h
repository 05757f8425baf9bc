#ifndef DDP_SCTP_SEGMENT_SENDER_H_
#define DDP_SCTP_SEGMENT_SENDER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer_pool.h"
#include "ddp/sctp/fifo_space.h"
#include "llp/ulpdu.h"

namespace weft::ddp::sctp {

// Makes a DDP Segment Chunk of each ULPDU (RFC 5043 section 5.2.2): a queue of messages, each a gather list. The
// DDP-SSN, the header and a short payload are copied into a staging block of the pool (held only while messages wait);
// a long payload is referenced where it lies.
class SegmentSender {
 public:
  // What one sender queues at most. An empty one has room for every ULPDU.
  static constexpr size_t kMostMessages = 64;
  static constexpr size_t kMostPieces = 192;        // of all messages
  static constexpr size_t kMostMessagePieces = 40;  // of one

  explicit SegmentSender(BufferPool& pool) : pool_(pool) {}
  SegmentSender(const SegmentSender&) = delete;

  // As llp::UlpduWriter has them. The caller keeps to the longest segment.
  bool HasRoom(size_t payload_length, size_t payload_pieces) const;
  // False: the payload is not there any more, and nothing was appended.
  bool Append(uint16_t ssn, ByteSpan header, std::span<const iovec> payload, bool volatile_payload);
  // False: not all of it is there any more.
  bool TakeOver(const void* begin, size_t length, bool (*copy)(uint8_t* to, const uint8_t* from, size_t count));

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }  // messages
  // The oldest message; not if empty(). Valid until Append, Pop, TakeOver or Clear.
  std::span<const iovec> Front() const;
  // Before the oldest goes out by a thread of ours: takes over what it references. False: that is not there any more.
  [[nodiscard]] bool TakeOverFront();
  size_t FrontLength() const { return messages_[first_].length; }
  // It is out of our hands.
  void Pop();
  void Clear();

 private:
  struct Message {
    size_t staged_at = 0, staged = 0;  // bytes of staging_
    size_t piece_at = 0, pieces = 0;   // of pieces_
    size_t length = 0;                 // bytes in all
  };

  // Referenced pieces of one message.
  std::span<iovec> PayloadOf(const Message& message) { return std::span(pieces_).subspan(message.piece_at + 1, message.pieces - 1); }
  bool IsTakenOver(const void* at) const;
  Message& at(size_t index) { return messages_[(first_ + index) % kMostMessages]; }

  BufferPool& pool_;
  BufferPool::Lease staging_;
  FifoSpace staging_space_{BufferPool::kBlockSize};
  FifoSpace piece_space_{kMostPieces};
  size_t first_ = 0, count_ = 0;
  std::array<Message, kMostMessages> messages_;
  std::array<iovec, kMostPieces> pieces_;
  uint64_t popped_ = 0;  // messages
  struct Own {
    uint64_t message;  // how many were popped before it
    std::vector<uint8_t> bytes;
  };
  std::vector<Own> taken_over_;  // payload of messages that wait
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SEGMENT_SENDER_H_
