#ifndef MPA_REFERENCE_H_
#define MPA_REFERENCE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/byte_reader.h"
#include "mpa/fpdu_receiver.h"
#include "llp/ulpdu.h"

// For tests: RFC 5044 section 4 implemented a second time, byte by byte and without regard to speed, to compare with;
// and a sink that records what it gets.
namespace weft::mpa {

using Bytes = std::vector<uint8_t>;

// Appends the FPDU of `ulpdu` to `stream`, which holds all bytes since the start of Full Operation.
void ReferenceEncode(Bytes& stream, ByteSpan ulpdu, bool crc, bool markers);

struct ReferenceDecoded {
  std::vector<Bytes> ulpdus;
  FpduError error = FpduError::kNone;
  bool at_boundary = true;  // the bytes end between two FPDUs
};
// Cuts the start of a stream into ULPDUs, up to the first error.
ReferenceDecoded ReferenceDecode(ByteSpan stream, const FpduReceiver::Options& options);

// Keeps each ULPDU. Takes a varying number of bytes as the header, and places the payload in separate pieces of varying
// sizes with guard bytes around them.
class RecordingSink : public llp::UlpduSink {
 public:
  // Returns false from the Begin or End with this number (counted together from 0).
  explicit RecordingSink(size_t refuse_at = ~size_t{0}) : refuse_at_(refuse_at) {}

  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override;
  bool End() override;

  const std::vector<Bytes>& ulpdus() const { return ulpdus_; }
  bool between() const { return between_; }
  // The payload memory of the ULPDU in progress, as one piece, with 0xcc where nothing was placed.
  Bytes placed() const;
  size_t header_length() const { return header_.size(); }
  // At most this many pieces per payload.
  void set_max_pieces(size_t pieces) { max_pieces_ = pieces; }

 private:
  size_t refuse_at_;
  size_t calls_ = 0;
  size_t max_pieces_ = 5;
  bool between_ = false;
  size_t length_ = 0;
  Bytes header_;
  std::vector<Bytes> memory_;
  std::vector<iovec> pieces_;
  std::vector<Bytes> ulpdus_;
};

// Feeds `bytes` through PrepareRead and Commit, at most `step` at a time (0: as many as asked for). Returns the result
// of the last Commit, and stops when it is false.
bool Feed(FpduReceiver& receiver, ByteSpan bytes, size_t step = 0);

}  // namespace weft::mpa

#endif  // MPA_REFERENCE_H_
