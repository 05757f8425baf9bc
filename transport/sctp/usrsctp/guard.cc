#include "transport/sctp/usrsctp/guard.h"

#include <algorithm>
#include <cstddef>

#include "transport/sctp/usrsctp/header_sizes.h"

namespace weft::transport::sctp {
namespace {

using Bytes = std::span<const uint8_t>;

constexpr size_t kChunkHeader = 4, kParameterHeader = 4;
constexpr size_t kInitFixed = 16;        // behind the chunk's header
constexpr uint32_t kLeastWindow = 1500;  // RFC 9260 section 3.3.2
constexpr uint8_t kInit = 1, kInitAck = 2, kSack = 3, kAbort = 6, kError = 9;
constexpr uint8_t kAsconf = 0xc1, kAsconfAck = 0x80, kReconfig = 0x82;  // RFC 5061, RFC 6525
constexpr uint16_t kAdaptation = 0xc006;  // RFC 5061 section 4.2.6
constexpr uint16_t kRandom = 0x8002, kHmacAlgorithms = 0x8004;  // and the chunk list between them: RFC 4895 section 3

uint16_t At16(Bytes bytes, size_t at) { return static_cast<uint16_t>(bytes[at] << 8 | bytes[at + 1]); }
uint32_t At32(Bytes bytes, size_t at) { return uint32_t{At16(bytes, at)} << 16 | At16(bytes, at + 2); }
size_t Padded(size_t length) { return (length + 3) & ~size_t{3}; }

// Parameters, or causes of errors, one behind the other. The padding of the last may be missing.
bool Fit(Bytes parameters, bool without_auth) {
  while (!parameters.empty()) {
    if (parameters.size() < kParameterHeader) return false;
    const uint16_t type = At16(parameters, 0), length = At16(parameters, 2);
    if (length < kParameterHeader || length > parameters.size()) return false;
    if (without_auth && type >= kRandom && type <= kHmacAlgorithms) return false;
    if (Padded(length) >= parameters.size()) return true;
    parameters = parameters.subspan(Padded(length));
  }
  return true;
}

bool IsInit(Bytes body, bool without_auth) {
  if (body.size() < kInitFixed) return false;
  const bool values = At32(body, 0) != 0 && At32(body, 4) >= kLeastWindow && At16(body, 8) != 0 && At16(body, 10) != 0;
  return values && Fit(body.subspan(kInitFixed), without_auth);
}

}  // namespace

bool MayEnter(Bytes packet, bool has_association) {
  if (packet.size() < kCommonHeader + kChunkHeader) return false;
  const bool tagged = At32(packet, 4) != 0;
  Bytes rest = packet.subspan(kCommonHeader);
  for (bool first = true; !rest.empty(); first = false) {
    if (rest.size() < kChunkHeader) return false;
    const uint8_t type = rest[0];
    const uint16_t length = At16(rest, 2);
    if (length < kChunkHeader || length > rest.size()) return false;
    const bool last = Padded(length) >= rest.size();
    const Bytes body = rest.subspan(kChunkHeader, length - kChunkHeader);
    switch (type) {
      case kInit:
        if (!first || !last || tagged || !IsInit(body, has_association)) return false;
        break;
      case kInitAck:
        if (!first || !last || !tagged || !IsInit(body, false)) return false;
        break;
      case kAbort:
      case kError:
        if (!Fit(body, false)) return false;
        break;
      case kAsconf:
      case kAsconfAck:
      case kReconfig:
        return false;
      default:
        break;
    }
    if (!tagged && type != kInit) return false;
    if (last) return true;
    rest = rest.subspan(Padded(length));
  }
  return true;
}

std::optional<InitPacket> AsInit(Bytes packet) {
  if (packet[kCommonHeader] != kInit) return std::nullopt;
  InitPacket init{.tag = At32(packet, kCommonHeader + kChunkHeader), .adaptation = {}};
  const size_t length = At16(packet, kCommonHeader + 2);
  Bytes parameters = packet.subspan(kCommonHeader, length).subspan(kChunkHeader + kInitFixed);
  while (!parameters.empty()) {
    const size_t size = At16(parameters, 2);
    if (At16(parameters, 0) == kAdaptation && size == kParameterHeader + 4) init.adaptation = At32(parameters, kParameterHeader);
    parameters = parameters.subspan(std::min(Padded(size), parameters.size()));
  }
  return init;
}

std::optional<uint32_t> CumulativeAck(Bytes packet) {
  if (packet[kCommonHeader] != kSack || packet.size() < kCommonHeader + kChunkHeader + 4) return std::nullopt;
  return At32(packet, kCommonHeader + kChunkHeader);
}

}  // namespace weft::transport::sctp
