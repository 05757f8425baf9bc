#include "transport/sctp/testing/virtual_sctp.h"

#include <netinet/in.h>

#include <chrono>
#include <cstring>
#include <utility>

#include "base/check.h"

namespace weft::transport::sctp {
namespace {

// Bits that two addresses of one family have in common at their front.
size_t CommonPrefix(const SocketAddress& a, const SocketAddress& b) {
  if (a.family() != b.family()) return 0;
  const auto host = [](const SocketAddress& address) {
    return address.family() == AF_INET
               ? reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in*>(address.get())->sin_addr)
               : reinterpret_cast<const uint8_t*>(&reinterpret_cast<const sockaddr_in6*>(address.get())->sin6_addr);
  };
  const size_t length = a.family() == AF_INET ? 4 : 16;
  size_t bits = 0;
  while (bits < 8 * length && ((host(a)[bits / 8] ^ host(b)[bits / 8]) >> (7 - bits % 8) & 1) == 0) ++bits;
  return bits;
}

}  // namespace

VirtualSctp::~VirtualSctp() {
  if (hosts_.empty()) return;
  // What was shut down, or aborted, takes its time.
  network_.RunFor(std::chrono::minutes(5));
  WEFT_CHECK(StopUsrsctp());
}

Sctp& VirtualSctp::AddHost(const std::vector<std::string>& addresses, uint32_t mtu, uint16_t udp_port) {
  Host host;
  host.network = host_network_ = &network_.AddHost(addresses);
  std::vector<HostAddress> list;
  for (const std::string& text : addresses)
    list.push_back({*SocketAddress::Parse(text, 0), "v" + std::to_string(list.size()), mtu});
  host.list_addresses = [list] { return list; };
  host.source_for = [list](const SocketAddress& to) -> std::optional<SocketAddress> {
    const HostAddress* best = nullptr;
    size_t best_bits = 0;
    for (const HostAddress& one : list) {
      const size_t bits = CommonPrefix(one.address, to);
      if (one.address.family() == to.family() && (best == nullptr || bits > best_bits)) {
        best = &one;
        best_bits = bits;
      }
    }
    if (best == nullptr) return std::nullopt;
    return best->address;
  };
  auto udp = host.network->OpenDatagram(*SocketAddress::Parse("::", udp_port), {});
  WEFT_CHECK(udp.ok());
  host.udp = std::move(*udp);
  hosts_.push_back(std::make_unique<HostSctp>(*stack_, std::move(host)));
  return *hosts_.back();
}

void VirtualSctp::Fill(void* to, size_t count) {
  auto* at = static_cast<uint8_t*>(to);
  for (; count >= 8; at += 8, count -= 8) {
    const uint64_t number = random_.Next();
    std::memcpy(at, &number, 8);
  }
  const uint64_t number = random_.Next();
  std::memcpy(at, &number, count);
}

}  // namespace weft::transport::sctp
