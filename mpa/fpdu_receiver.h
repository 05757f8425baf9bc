#ifndef MPA_FPDU_RECEIVER_H_
#define MPA_FPDU_RECEIVER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer_pool.h"
#include "llp/placement.h"
#include "llp/ulpdu.h"

namespace weft::mpa {

// An error of the stream; RFC 5044 section 8 gives each a Terminate code.
enum class FpduError : uint8_t {
  kNone,
  kBadCrc,     // CRC32C does not match
  kBadMarker,  // a marker does not point at the start of its FPDU
  kBadLength,  // ULPDU_Length is zero, or more than agreed
};

// Cuts a byte stream into FPDUs (RFC 5044 section 4) and hands the ULPDUs to a sink. The owner reads:
//   iov = PrepareRead(); n = readv(iov); more = Commit(n);
// With CRC and markers off, the iovec is the sink's own memory followed by a little read-ahead, so that the kernel
// places the payload of a long FPDU itself. Otherwise bytes pass through a staging block from the pool, which is held
// only while it contains bytes.
class FpduReceiver {
 public:
  struct Options {
    bool crc = true;
    bool markers = false;      // we asked the peer for markers
    size_t max_ulpdu = 65535;  // a longer ULPDU is kBadLength
  };

  static constexpr size_t kMaxPieces = 64;

  FpduReceiver(const Options& options, BufferPool& pool, llp::UlpduSink& sink);

  // Where to read the next bytes of the stream. Never empty, at most kMaxPieces pieces. Valid until Commit.
  std::span<const iovec> PrepareRead();

  // `count` bytes (0 if nothing arrived) were read into PrepareRead(). Calls the sink, possibly several times. Returns
  // false if the stream has to stop: error() tells why, or is kNone if the sink stopped it.
  bool Commit(size_t count);

  FpduError error() const { return error_; }
  // No FPDU is partly received, so the stream may end here.
  bool at_boundary() const;

  // Memory of the sink may be going away. If bytes are being placed between Begin and End, the rest of that FPDU's
  // payload is dropped, and the sink still gets End(). Returns whether there was such an FPDU.
  bool DivertPlacement();

  // The kernel reported EFAULT for memory of PrepareRead(). The sink is told, and the same bytes are to be read again,
  // to be dropped. Returns false if the memory was not the sink's.
  bool GiveUpPlacement();

 private:
  // With CRC or markers, the whole FPDU must be in the staging block before any of it is handed on.
  bool staged_whole() const { return options_.crc || options_.markers; }
  bool ParseAsItComes();
  bool ParseWhole();
  bool DeliverWhole(size_t lead, size_t length, size_t total);
  // Defers the payload of this ULPDU of the staging block, if the plan allows it, a thread of Weft would need a system
  // call for it, and there is room.
  bool Defer(ByteSpan ulpdu, const llp::UlpduPlan& plan);
  bool AddDeferred(ByteSpan ulpdu, const llp::UlpduPlan& plan);
  // Places the payload of this ULPDU of the staging block, and what was deferred, with one call. Returns false if nothing
  // was deferred or if that is not possible; nothing has changed then.
  bool PlaceWithDeferred(ByteSpan ulpdu, const llp::UlpduPlan& plan);
  // Places what was deferred, with one call. Returns false if that is not possible; the sink has been told.
  bool PlaceDeferred();
  bool DeliverAroundMarkers(size_t lead, size_t length);
  bool MarkersAgree(size_t lead, size_t total) const;
  bool Fail(FpduError error);
  size_t ReadAhead() const;
  // Notes how long a ULPDU and its header are, from which ReadAhead() guesses those of the ones that follow.
  void Note(size_t length, size_t header_length);
  size_t StagingWanted() const;
  static size_t LongOrMany(size_t length);
  bool near_long() const { return since_long_ < kNearLong; }
  void MoveStagedToFront();
  ByteSpan staged() const { return {staging_.data() + begin_, end_ - begin_}; }

  const Options options_;
  BufferPool& pool_;
  llp::UlpduSink& sink_;

  // Bytes that were received but not consumed are [begin_, end_) of the block.
  BufferPool::Lease staging_;
  size_t begin_ = 0;
  size_t end_ = 0;

  // The ULPDU between Begin and End (without CRC and markers it may stay open after Commit).
  bool placing_ = false;
  bool discarding_ = false;
  size_t payload_left_ = 0;  // bytes not placed yet
  size_t tail_left_ = 0;     // PAD and CRC field
  llp::Placement placement_;

  // Behind a long ULPDU so many are looked at together with it: the rest of its message, and a message that tells of it.
  static constexpr size_t kNearLong = 4;

  // Whole ULPDUs that were ended and are not placed yet: their bytes in the staging block, and where the payload goes.
  // The kernel takes much longer for a piece of what it copies from than for one of what it copies to. So it gets one
  // piece of the staging block, and what stands between two payloads there goes to `gap`. Of one call of Commit(), so
  // that a connection has no memory for it.
  struct Deferred {
    static constexpr size_t kMost = 192;
    size_t count = 0;
    std::array<iovec, kMost> ulpdus;
    std::array<iovec, 2 * kMost> to;  // the payload of ULPDU i at 2 * i, and behind it the gap
    std::array<uint8_t, 64> gap;

    uint8_t* end(size_t i) const { return static_cast<uint8_t*>(ulpdus[i].iov_base) + ulpdus[i].iov_len; }
    uint8_t* payload(size_t i) const { return end(i) - to[2 * i].iov_len; }
  };
  static bool Scatter(const Deferred& deferred);
  Deferred* deferred_ = nullptr;

  uint64_t position_ = 0;       // stream position of begin_, counted with markers only
  size_t frame_total_ = 0;      // length on the wire of the FPDU at begin_; 0: not known yet
  // What is used to predict the next ULPDU: the length of the last one, of the last long one and of the one behind that,
  // the long one's header, and how many came after it. For each such number, whether a frame followed the last time that
  // kShortReadAhead has room for.
  size_t last_length_ = 0, long_length_ = 0, after_long_ = 0, long_header_ = 0, since_long_ = kNearLong;
  std::array<bool, kNearLong> tiny_follows_{};
  size_t prepared_direct_ = 0;  // bytes of the prepared read that go to sink memory
  size_t prepared_ = 0;         // all bytes of the prepared read
  bool stopped_ = false;
  FpduError error_ = FpduError::kNone;
  std::array<iovec, kMaxPieces> pieces_;
};

}  // namespace weft::mpa

#endif  // MPA_FPDU_RECEIVER_H_
