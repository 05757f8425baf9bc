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

// What the private data of an Initiate, Accept or Reject are made of, in this order: IRD and ORD (RFC 6581 section 9)
// in an enhanced Initiate or Accept, the program's bytes, and between two Weft ends a trailer. RFC 6581 has no IRD and
// ORD in a Reject over SCTP.
struct SetUpData {
  std::optional<llp::ReadWords> reads;
  std::vector<uint8_t> program;
  std::optional<llp::WeftTrailer> trailer;

  // `has_reads`: of an enhanced Initiate or Accept, which Chunk::Parse() has found long enough. `extensions`: a trailer
  // is looked for.
  static SetUpData Parse(ByteSpan private_data, bool has_reads, bool extensions);
  // At most kMaxPrivateData bytes. The trailer is left out when there is no room; nullopt: there is none for the
  // program's bytes either.
  std::optional<std::vector<uint8_t>> Serialize() const;
  // Most bytes of the program.
  static constexpr size_t Room(bool has_reads) { return kMaxPrivateData - (has_reads ? kReadsLength : 0); }
};

}  // namespace weft::ddp::sctp

#endif  // DDP_SCTP_SET_UP_DATA_H_
