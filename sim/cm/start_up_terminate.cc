#include "sim/cm/start_up_terminate.h"

#include <array>
#include <optional>

#include "ddp/header.h"
#include "mpa/fpdu_sender.h"
#include "rdmap/opcode.h"
#include "rdmap/terminate.h"

namespace weft::sim {
namespace {

// RFC 6581 section 8.
constexpr uint8_t kInsufficientIrd = 6, kNoMatchingRtr = 7;

std::optional<uint8_t> CodeOf(mpa::StartError error) {
  switch (error) {
    case mpa::StartError::kIrdOrdRefused:
      return kInsufficientIrd;
    case mpa::StartError::kNoCommonRtr:
      return kNoMatchingRtr;
    default:
      return std::nullopt;
  }
}

}  // namespace

std::vector<uint8_t> StartUpTerminate(mpa::StartError error, const mpa::StartOutcome& outcome, BufferPool& pool) {
  const auto code = CodeOf(error);
  if (!code) return {};
  rdmap::TerminateMessage why;
  why.layer = rdmap::TerminateLayer::kLlp;
  why.error_code = *code;
  std::array<uint8_t, rdmap::TerminateMessage::kMaxLength> message;
  const iovec payload{message.data(), why.Serialize(message)};

  ddp::UntaggedHeader segment;
  segment.last = true;
  segment.rsvd_ulp = rdmap::ControlByteOf(rdmap::Opcode::kTerminate);
  segment.queue = rdmap::kTerminateQueue;
  segment.msn = ddp::Msn(1);
  std::array<uint8_t, ddp::UntaggedHeader::kLength> header;
  segment.Serialize(header);

  mpa::FpduSender sender({.crc = outcome.crc, .markers = outcome.send_markers}, pool);
  sender.Append(header, {&payload, 1}, /*volatile_payload=*/true);
  std::vector<uint8_t> bytes;
  for (const iovec& piece : sender.Pending()) {
    const auto* from = static_cast<const uint8_t*>(piece.iov_base);
    bytes.insert(bytes.end(), from, from + piece.iov_len);
  }
  return bytes;
}

}  // namespace weft::sim
