// Chunks and their private data: what parses comes back as the same bytes, and nothing else is read.
//
// Input: payload protocol identifier (1 byte), then the message.
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "ddp/sctp/chunk.h"
#include "ddp/sctp/set_up_data.h"

namespace weft::ddp::sctp {
namespace {

using Bytes = std::vector<uint8_t>;

void Run(ByteSpan input) {
  if (input.empty()) return;
  const uint32_t ppid = input[0];
  const ByteSpan message = input.subspan(1);
  const auto chunk = Chunk::Parse(ppid, message);
  if (!chunk.ok()) {
    WEFT_CHECK(ToString(chunk.error())[0] != '?');
    return;
  }
  WEFT_CHECK(!chunk->ToString().empty() && chunk->ppid() == ppid);
  Bytes again(kControlHeaderLength);
  again.resize(chunk->SerializeHeader(again));
  again.insert(again.end(), chunk->body.begin(), chunk->body.end());
  WEFT_CHECK(again == Bytes(message.begin(), message.end()));
  if (chunk->kind == Chunk::Kind::kSegment) return;

  const bool has_reads = chunk->enhanced && chunk->kind != Chunk::Kind::kReject;
  for (const bool extensions : {false, true}) {
    const SetUpData data = SetUpData::Parse(chunk->body, has_reads, extensions);
    const auto bytes = data.Serialize();
    WEFT_CHECK(bytes && bytes->size() == chunk->body.size());
    // But for a trailer of a claim that is too small to be believed, the same.
    if (!data.trailer || data.trailer->max_ulpdu > 128)
      WEFT_CHECK(*bytes == Bytes(chunk->body.begin(), chunk->body.end()));
    if (!data.reads) continue;
    llp::Outcome outcome;
    const llp::ReadWords reply = llp::AnswerReads(*data.reads, {.ird = 7, .ord = 9}, &outcome);
    WEFT_CHECK(((reply.ird ^ data.reads->ird) & llp::kPeerToPeerBit) == 0);
    const auto error = llp::OnReadsAnswer({.ird = 7, .ord = 9, .peer_to_peer = true}, *data.reads, false, &outcome);
    if (error == llp::ReadsError::kNone) WEFT_CHECK(outcome.ird <= 7 && outcome.ord <= 9);
  }
}

}  // namespace
}  // namespace weft::ddp::sctp

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::ddp::sctp::Run({data, size});
  return 0;
}
