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

// Turns each ULPDU into a DDP Segment Chunk (RFC 5043 section 5.2.2) and queues the messages, each as a gather list.
// The DDP-SSN, the header and a short payload are copied into a staging block of the pool, which is held only while
// messages wait. A long payload is referenced where it is.
class SegmentSender {
 public:
  // Limits of one sender's queue. An empty sender has room for every ULPDU.
  static constexpr size_t kMostMessages = 64;
  static constexpr size_t kMostPieces = 192;        // of all messages
  static constexpr size_t kMostMessagePieces = 40;  // of one

  explicit SegmentSender(BufferPool& pool) : pool_(pool) {}
  SegmentSender(const SegmentSender&) = delete;

  // See llp::UlpduWriter. The caller keeps to the longest segment.
  bool HasRoom(size_t payload_length, size_t payload_pieces) const;
  // Returns false if the payload is no longer mapped; nothing was appended.
  bool Append(uint16_t ssn, ByteSpan header, std::span<const iovec> payload, bool volatile_payload);
  // Returns false if some of it is no longer mapped.
  bool TakeOver(const void* begin, size_t length, bool (*copy)(uint8_t* to, const uint8_t* from, size_t count));

  bool empty() const { return count_ == 0; }
  size_t size() const { return count_; }  // messages
  // The oldest message; only if not empty(). Valid until Append, Pop, TakeOver or Clear.
  std::span<const iovec> Front() const;
  size_t FrontLength() const { return messages_[first_].length; }
  // The oldest message is sent.
  void Pop();
  void Clear();

 private:
  struct Message {
    size_t staged_at = 0, staged = 0;  // bytes of staging_
    size_t piece_at = 0, pieces = 0;   // of pieces_
    size_t length = 0;                 // bytes in all
  };

  // The referenced pieces of one message.
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
    uint64_t message;  // how many messages were popped before it
    std::vector<uint8_t> bytes;
  };
  std::vector<Own> taken_over_;  // copied payload of messages that wait
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SEGMENT_SENDER_H_
