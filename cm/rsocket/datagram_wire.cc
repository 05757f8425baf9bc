#include "cm/rsocket/datagram_wire.h"

#include <arpa/inet.h>

#include <cstring>

namespace weft::rsocket {
namespace {

constexpr uint8_t kVersion4 = 4, kVersion6 = 6;
constexpr size_t kHeader4 = 8, kHeader6 = 24;
constexpr size_t kLookup4 = 16, kLookup6 = 28;
constexpr uint32_t kMostQueuePair = 0xffffff;

const sockaddr_in& In4(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in&>(address); }
sockaddr_in& In4(sockaddr_storage& address) { return reinterpret_cast<sockaddr_in&>(address); }
const sockaddr_in6& In6(const sockaddr_storage& address) { return reinterpret_cast<const sockaddr_in6&>(address); }
sockaddr_in6& In6(sockaddr_storage& address) { return reinterpret_cast<sockaddr_in6&>(address); }

template <typename Value>
void Put(uint8_t* to, const Value& value) {
  std::memcpy(to, &value, sizeof value);
}
template <typename Value>
void Get(const uint8_t* from, Value* value) {
  std::memcpy(value, from, sizeof *value);
}

}  // namespace

size_t DatagramHeader::Serialize(std::span<uint8_t, kMostLength> out) const {
  if (from.ss_family == AF_INET) {
    out[0] = kVersion4;
    out[1] = kHeader4;
    Put(&out[2], In4(from).sin_port);
    Put(&out[4], In4(from).sin_addr);
    return kHeader4;
  }
  out[0] = kVersion6;
  out[1] = kHeader6;
  Put(&out[2], In6(from).sin6_port);
  Put(&out[4], In6(from).sin6_flowinfo);
  Put(&out[8], In6(from).sin6_addr);
  return kHeader6;
}

std::optional<DatagramHeader> DatagramHeader::Parse(Bytes datagram, size_t* length) {
  if (datagram.size() < kHeader4) return std::nullopt;
  DatagramHeader header;
  if (datagram[0] == kVersion4 && datagram[1] == kHeader4) {
    header.from.ss_family = AF_INET;
    Get(&datagram[2], &In4(header.from).sin_port);
    Get(&datagram[4], &In4(header.from).sin_addr);
  } else if (datagram[0] == kVersion6 && datagram[1] == kHeader6 && datagram.size() >= kHeader6) {
    header.from.ss_family = AF_INET6;
    Get(&datagram[2], &In6(header.from).sin6_port);
    Get(&datagram[8], &In6(header.from).sin6_addr);
  } else {
    return std::nullopt;
  }
  *length = datagram[1];
  return header;
}

size_t LookupHeader::Serialize(std::span<uint8_t, kMostLength> out) const {
  const bool is4 = to.ss_family == AF_INET;
  Put(&out[0], htonl(kTag));
  out[4] = is4 ? kVersion4 : kVersion6;
  out[5] = static_cast<uint8_t>(op);
  out[6] = is4 ? kLookup4 : kLookup6;
  out[7] = 0;
  Put(&out[8], htonl(queue_pair));
  if (is4) {
    Put(&out[12], In4(to).sin_addr);
  } else {
    Put(&out[12], In6(to).sin6_addr);
  }
  return out[6];
}

std::optional<LookupHeader> LookupHeader::Parse(Bytes datagram, size_t* length) {
  if (datagram.size() < kLookup4) return std::nullopt;
  uint32_t tag, queue_pair;
  Get(&datagram[0], &tag);
  Get(&datagram[8], &queue_pair);
  if (ntohl(tag) != kTag) return std::nullopt;
  LookupHeader header;
  header.queue_pair = ntohl(queue_pair);
  if (header.queue_pair > kMostQueuePair) return std::nullopt;
  header.op = static_cast<Op>(datagram[5]);
  if (header.op != Op::kData && header.op != Op::kControl) return std::nullopt;
  if (datagram[4] == kVersion4 && datagram[6] == kLookup4) {
    header.to.ss_family = AF_INET;
    Get(&datagram[12], &In4(header.to).sin_addr);
  } else if (datagram[4] == kVersion6 && datagram[6] == kLookup6 && datagram.size() >= kLookup6) {
    header.to.ss_family = AF_INET6;
    Get(&datagram[12], &In6(header.to).sin6_addr);
  } else {
    return std::nullopt;
  }
  *length = datagram[6];
  return header;
}

}  // namespace weft::rsocket
