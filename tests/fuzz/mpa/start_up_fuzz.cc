// Start frames: any bytes as request and as reply. The first byte says how the collector is fed and what we want.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/check.h"
#include "mpa/start_up.h"

namespace weft::mpa {
namespace {

StartParams Params(uint8_t choice) {
  StartParams params;
  params.revision = choice & 1 ? 1 : 2;
  params.crc = choice & 2;
  params.markers = choice & 4;
  params.ird = choice & 8 ? 0 : 16;
  params.ord = choice & 16 ? 0 : 65535;
  params.peer_to_peer = choice & 32;
  params.rtr_write = choice & 64;
  params.rtr_read = choice & 128;
  params.private_data.assign(choice, choice);
  return params;
}

// Anything that we make is a valid frame.
StartFrame OverTheWire(const StartFrame& frame) {
  const std::vector<uint8_t> bytes = frame.Serialize();
  auto parsed = StartFrame::Parse(bytes, frame.reply);
  WEFT_CHECK(parsed.ok() && parsed.value().has_value());
  WEFT_CHECK(parsed.value()->Serialize() == bytes);
  WEFT_CHECK(!frame.ToString().empty());
  return *parsed.value();
}

void OnRequest(const StartFrame& request, const StartParams& ours) {
  StartOutcome outcome;
  (void)DescribeRequest(request);
  const StartFrame reply = OverTheWire(MakeReply(request, ours, &outcome));
  WEFT_CHECK(reply.enhanced == (request.enhanced && ours.revision == 2));
  if (reply.enhanced) {
    const uint16_t their_ird = request.ird_word & kIrdOrdMask;
    if (their_ird != kIrdOrdNotNegotiated) WEFT_CHECK(outcome.ord <= their_ird);
    WEFT_CHECK(((reply.ird_word ^ request.ird_word) & kPeerToPeerBit) == 0);
  } else {
    WEFT_CHECK(outcome.rtr == llp::Rtr::kNone);
  }
  OverTheWire(MakeReject(request, ours.private_data));
  std::vector<uint8_t> data = request.private_data;
  if (const auto trailer = WeftTrailer::TakeFrom(data)) {
    WEFT_CHECK(trailer->max_ulpdu >= 128 && data.size() + trailer->length() == request.private_data.size());
  } else {
    WEFT_CHECK(data == request.private_data);
  }
}

void OnAnyReply(const StartFrame& reply, const StartParams& ours) {
  StartOutcome outcome;
  const StartError error = OnReply(ours, reply, &outcome);
  WEFT_CHECK(!reply.rejected || error == StartError::kRejected || error == StartError::kBadRevision);
  if (error != StartError::kNone) return;
  WEFT_CHECK(outcome.ird <= ours.ird && outcome.ord <= ours.ord);
  WEFT_CHECK(outcome.crc == (ours.crc || reply.crc));
  if (!ours.peer_to_peer || ours.revision == 1) WEFT_CHECK(outcome.rtr == llp::Rtr::kNone);
}

void Run(ByteSpan input) {
  if (input.size() < 2) return;
  const uint8_t choice = input[0];
  const bool reply = input[1] & 1;
  const size_t step = 1 + (input[1] >> 1);
  const ByteSpan stream = input.subspan(2);

  StartFrameCollector collector(reply);
  StartError error = StartError::kNone;
  size_t at = 0;
  for (MutableByteSpan into = collector.PrepareRead();
       !into.empty() && at < stream.size() && error == StartError::kNone; into = collector.PrepareRead()) {
    const size_t count = std::min({into.size(), step, stream.size() - at});
    std::memcpy(into.data(), stream.data() + at, count);
    at += count;
    error = collector.Commit(count);
    WEFT_CHECK(*ToString(error) != 0);
  }

  // All at once gives the same.
  auto parsed = StartFrame::Parse(stream, reply);
  WEFT_CHECK(collector.complete() == (parsed.ok() && parsed.value().has_value()));
  WEFT_CHECK(parsed.ok() ? error == StartError::kNone : error == parsed.error());
  if (!collector.complete()) return;
  WEFT_CHECK(at == StartFrame::NeededBytes(stream));
  WEFT_CHECK(collector.frame().Serialize() == parsed.value()->Serialize());
  OverTheWire(collector.frame());
  if (reply) {
    OnAnyReply(collector.frame(), Params(choice));
  } else {
    OnRequest(collector.frame(), Params(choice));
  }
}

}  // namespace
}  // namespace weft::mpa

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  weft::mpa::Run({data, size});
  return 0;
}
