#include "sim/cm/start_up_terminate.h"

#include <array>

#include "ddp/header.h"
#include "rdmap/opcode.h"
#include "rdmap/terminate.h"

namespace weft::sim {

void AppendStartUpTerminate(llp::UlpduWriter& writer, uint8_t code) {
  rdmap::TerminateMessage why;
  why.layer = rdmap::TerminateLayer::kLlp;
  why.error_code = code;
  std::array<uint8_t, rdmap::TerminateMessage::kMaxLength> message;
  const iovec payload{message.data(), why.Serialize(message)};

  ddp::UntaggedHeader segment;
  segment.last = true;
  segment.rsvd_ulp = rdmap::ControlByteOf(rdmap::Opcode::kTerminate);
  segment.queue = rdmap::kTerminateQueue;
  segment.msn = ddp::Msn(1);
  std::array<uint8_t, ddp::UntaggedHeader::kLength> header;
  segment.Serialize(header);
  writer.Append(header, {&payload, 1}, /*volatile_payload=*/true);
}

}  // namespace weft::sim
