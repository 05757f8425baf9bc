#ifndef MPA_FPDU_SENDER_H_
#define MPA_FPDU_SENDER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer_pool.h"
#include "llp/ulpdu.h"

namespace weft::mpa {

// Frames ULPDUs as FPDUs (RFC 5044 section 4) into a gather list; one sendmsg takes many of them. Headers and short
// payloads are copied into a staging block from the pool, which is held only while bytes wait. Long payloads are copied
// if CRC or markers are on, and otherwise referenced where they are. A thread of Weft, which copies by calls of the kernel
// (base/program_memory.h), copies those of many FPDUs with one call, when they are to be written.
class FpduSender final : public llp::UlpduWriter {
 public:
  struct Options {
    bool crc = true;
    bool markers = false;      // the peer asked us for markers
    size_t max_ulpdu = 65535;  // clamped to 128 to 64768, the bounds of RFC 5044 section 3
  };

  static constexpr size_t kMaxPieces = 64;

  FpduSender(const Options& options, BufferPool& pool);

  size_t max_ulpdu() const override;
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override;
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override;
  uint64_t appended() const override;

  // What to write next, in order; empty if nothing waits. At most 64 pieces. Valid until Append or Consume.
  std::span<const iovec> Pending();
  // `count` bytes of Pending() were written.
  void Consume(size_t count);
  // Stream position after the last byte consumed. A ULPDU appended up to position p is sent when consumed() >= p.
  uint64_t consumed() const;
  bool empty() const;
  // Appended payload is no longer mapped: Pending() must not be written, and HasRoom() is false.
  bool payload_gone() const { return payload_gone_; }

  // Copies `count` bytes that may no longer be mapped. Returns false if some are not.
  using Copy = bool (*)(uint8_t* to, const uint8_t* from, size_t count);
  // The `length` bytes at `begin` are going away. Pieces of Pending() in this range are copied into memory of the
  // sender, and kept until they are written (2 MB at most). Their current content is sent. If they are no longer
  // mapped, payload_gone() becomes true.
  void TakeOver(const void* begin, size_t length, Copy copy);

 private:
  bool References(size_t payload_length, size_t payload_pieces) const;
  bool Fits(size_t bytes) const;
  uint8_t* Reserve(size_t bytes);
  void AddStaged(uint8_t* from, size_t count);
  // Copies the payload that was left out of FPDUs, and completes them.
  void Fill();
  bool IsStaged(const void* at) const;
  void AppendPlain(ByteSpan header, std::span<const iovec> payload, size_t payload_length, bool volatile_payload);
  void AppendUnfilled(uint8_t* frame, size_t ulpdu_length, uint8_t* at, std::span<const iovec> payload);
  // Writes PAD and CRC field of the FPDU at `frame`; `crc` is that of all up to `checked`.
  void Finish(uint8_t* frame, size_t ulpdu_length, uint32_t crc, const uint8_t* checked);
  void AppendReferenced(ByteSpan header, std::span<const iovec> payload, size_t payload_length);
  void AppendMarked(ByteSpan header, std::span<const iovec> payload, size_t payload_length, bool volatile_payload);

  const bool crc_;
  const bool markers_;
  const size_t max_ulpdu_;
  BufferPool& pool_;

  // Staged FPDUs without their payload, and where it lies. At the end of the staging block: a connection that has
  // nothing to send has no memory for it.
  struct Unfilled {
    static constexpr size_t kMost = 32, kMostPieces = 64;
    struct Frame {
      uint8_t* at;
      size_t ulpdu_length;
    };
    size_t count = 0, pieces = 0;
    std::array<Frame, kMost> frames;
    std::array<iovec, kMost> to;
    std::array<iovec, kMostPieces> from;
  };
  static constexpr size_t kRoom = BufferPool::kBlockSize - sizeof(Unfilled);  // bytes of the block, for FPDUs

  // The staged bytes that wait are [tail_, head_) of the block, or, once wrapped, [tail_, its used end) and [0, head_).
  BufferPool::Lease staging_;
  Unfilled* unfilled_ = nullptr;  // of the block; nullptr: none so far
  size_t head_ = 0;
  size_t tail_ = 0;
  bool wrapped_ = false;

  std::vector<std::vector<uint8_t>> taken_over_;  // copies; pieces that wait lie in them, or did

  size_t count_ = 0;  // pieces that wait
  bool payload_gone_ = false;
  uint64_t appended_ = 0;
  uint64_t consumed_ = 0;
  std::array<iovec, kMaxPieces> pieces_;
};

}  // namespace weft::mpa

#endif  // MPA_FPDU_SENDER_H_
