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

// What is wrong with the stream; RFC 5044 section 8 gives each a Terminate code.
enum class FpduError : uint8_t {
  kNone,
  kBadCrc,     // CRC32C does not match
  kBadMarker,  // a marker does not point at the start of its FPDU
  kBadLength,  // ULPDU_Length of zero, or beyond what was agreed
};

// Cuts a byte stream into FPDUs (RFC 5044 section 4) and hands the ULPDUs to a sink. The owner reads:
//   iov = PrepareRead(); n = readv(iov); more = Commit(n);
// With CRC and markers off the iovec is the sink's own memory followed by a little read-ahead, so that payload of a
// long FPDU is placed by the kernel. Otherwise bytes pass a staging block from the pool, held only while bytes are in
// it.
class FpduReceiver {
 public:
  struct Options {
    bool crc = true;
    bool markers = false;      // we asked the peer for markers
    size_t max_ulpdu = 65535;  // longer is kBadLength
  };

  static constexpr size_t kMaxPieces = 64;

  FpduReceiver(const Options& options, BufferPool& pool, llp::UlpduSink& sink);

  // Where the next bytes of the stream belong. Never empty, at most kMaxPieces. Valid until Commit.
  std::span<const iovec> PrepareRead();

  // `count` bytes (0 allowed: nothing came) were placed as PrepareRead said. Calls the sink, possibly several times.
  // Returns false when the stream has to stop: error() tells, or the sink said so (kNone).
  bool Commit(size_t count);

  FpduError error() const { return error_; }
  // No FPDU is partly received: an end of stream here is between FPDUs.
  bool at_boundary() const;

  // Sink memory may be going away: if bytes are being placed between Begin and End, the rest of that FPDU's payload is
  // thrown away instead, and the sink still gets End(). Returns whether there was such an FPDU.
  bool DivertPlacement();

  // The kernel finds memory of PrepareRead() that is not there (EFAULT): the sink hears of it, and the same bytes are read once more, to be thrown away. False:
  // that was no memory of the sink's.
  bool GiveUpPlacement();

 private:
  // CRC and markers need the whole FPDU in the staging block before any of it goes on.
  bool staged_whole() const { return options_.crc || options_.markers; }
  bool ParseAsItComes();
  bool ParseWhole();
  bool DeliverWhole(size_t lead, size_t length, size_t total);
  bool DeliverAroundMarkers(size_t lead, size_t length);
  bool MarkersAgree(size_t lead, size_t total) const;
  bool Fail(FpduError error);
  size_t ReadAhead() const;
  size_t StagingWanted() const;
  void MoveStagedToFront();
  ByteSpan staged() const { return {staging_.data() + begin_, end_ - begin_}; }

  const Options options_;
  BufferPool& pool_;
  llp::UlpduSink& sink_;

  // Bytes of the stream that came and were not consumed are [begin_, end_) of the block.
  BufferPool::Lease staging_;
  size_t begin_ = 0;
  size_t end_ = 0;

  // The ULPDU between Begin and End (outside Commit only without CRC and markers).
  bool placing_ = false;
  bool discarding_ = false;
  size_t payload_left_ = 0;  // not placed yet
  size_t tail_left_ = 0;     // PAD and CRC field
  llp::Placement placement_;

  uint64_t position_ = 0;       // stream position of begin_, counted with markers only
  size_t frame_total_ = 0;      // whole FPDU at begin_ on the wire; 0: its length is not known yet
  size_t last_length_ = 0;      // of the last ULPDU, a guess at the next
  size_t prepared_direct_ = 0;  // bytes of the prepared read that are sink memory
  size_t prepared_ = 0;         // all its bytes
  bool stopped_ = false;
  FpduError error_ = FpduError::kNone;
  std::array<iovec, kMaxPieces> pieces_;
};

}  // namespace weft::mpa

#endif  // MPA_FPDU_RECEIVER_H_
