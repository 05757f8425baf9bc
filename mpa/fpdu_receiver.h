#ifndef MPA_FPDU_RECEIVER_H_
#define MPA_FPDU_RECEIVER_H_

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/buffer_pool.h"
#include "mpa/ulpdu.h"

namespace weft::mpa {

// What is wrong with the stream; RFC 5044 section 8 gives each a Terminate code.
enum class FpduError : uint8_t {
  kNone,
  kBadCrc,        // CRC32C does not match
  kBadMarker,     // a marker does not point at the start of its FPDU
  kBadLength,     // ULPDU_Length of zero, or beyond what was agreed
};

// Cuts a byte stream into FPDUs (RFC 5044 section 4) and hands the ULPDUs to a sink. The owner reads:
//   iov = PrepareRead(); n = readv(iov); more = Commit(n);
// With CRC and markers off the iovec is the sink's own memory followed by a little read-ahead, so that payload of a long
// FPDU is placed by the kernel. Otherwise bytes pass a staging block from the pool, held only while bytes are in it.
class FpduReceiver {
 public:
  struct Options {
    bool crc = true;
    bool markers = false;      // we asked the peer for markers
    size_t max_ulpdu = 65535;  // longer is kBadLength
  };

  FpduReceiver(const Options& options, BufferPool& pool, UlpduSink& sink);

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

 private:
  // Implementation is the author's.
  FpduError error_ = FpduError::kNone;
};

}  // namespace weft::mpa

#endif  // MPA_FPDU_RECEIVER_H_
