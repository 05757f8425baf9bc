#ifndef DDP_SCTP_SET_UP_DATA_H_
#define DDP_SCTP_SET_UP_DATA_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/byte_reader.h"
#include "ddp/sctp/chunk.h"
#include "llp/reads.h"
#include "llp/weft_trailer.h"

namespace weft::ddp::sctp {

// The contents of the private data of an Initiate, Accept or Reject, in this order: IRD and ORD (RFC 6581 section 9) in
// an enhanced Initiate or Accept, the program's bytes, and a trailer between two Weft ends. Over SCTP, RFC 6581 has no
// IRD and ORD in a Reject.
struct SetUpData {
  std::optional<llp::ReadWords> reads;
  std::vector<uint8_t> program;
  std::optional<llp::WeftTrailer> trailer;

  // `has_reads`: the data comes from an enhanced Initiate or Accept, which Chunk::Parse() has found long enough.
  // `extensions`: look for a trailer.
  static SetUpData Parse(ByteSpan private_data, bool has_reads, bool extensions);
  // At most kMaxPrivateData bytes. Leaves out the trailer if there is no room. nullopt: there is no room for the
  // program's bytes either.
  std::optional<std::vector<uint8_t>> Serialize() const;
  // Maximum number of bytes of the program.
  static constexpr size_t Room(bool has_reads) { return kMaxPrivateData - (has_reads ? kReadsLength : 0); }
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SET_UP_DATA_H_
