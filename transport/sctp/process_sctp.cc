#include "transport/sctp/process_sctp.h"

#include <netinet/in.h>
#include <sys/random.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/check.h"
#include "transport/interfaces.h"
#include "transport/ip_frame.h"
#include "transport/local_address.h"
#include "transport/pcap.h"
#include "transport/sctp/kernel/kernel_sctp.h"
#include "transport/sctp_packet.h"
#include "transport/sctp/usrsctp/host_sctp.h"

namespace weft::transport::sctp {
namespace {

void FillFromKernel(void* to, size_t count) {
  auto* at = static_cast<uint8_t*>(to);
  while (count > 0) {
    const ssize_t got = getrandom(at, count, 0);
    if (got < 0) {
      WEFT_CHECK(errno == EINTR);
      continue;
    }
    at += got;
    count -= static_cast<size_t>(got);
  }
}

std::vector<HostAddress> ListHostAddresses() {
  std::vector<HostAddress> list;
  for (const NetworkInterface& interface : ListInterfaces()) {
    if (!interface.up) continue;
    for (const SocketAddress& address : interface.addresses) list.push_back({address, interface.name, interface.mtu});
  }
  return list;
}

std::optional<SocketAddress> KernelsSourceFor(const SocketAddress& to) {
  SocketAddress with_port = to;
  if (with_port.port() == 0) with_port.set_port(9);
  auto source = SourceAddressFor({}, with_port);
  if (!source) {
    const bool no_way = source.error() == ENETUNREACH || source.error() == EHOSTUNREACH;
    return no_way ? std::nullopt : std::optional(SocketAddress());
  }
  source->set_port(0);
  return *source;
}

Result<std::unique_ptr<DatagramSocket>, int> OpenUdp(Network& network, uint16_t port) {
  auto both = network.OpenDatagram(*SocketAddress::Parse("::", port), {.trains = true, .refusals = true});
  if (both || (both.error() != EAFNOSUPPORT && both.error() != EADDRNOTAVAIL)) return both;
  return network.OpenDatagram(*SocketAddress::Parse("0.0.0.0", port), {.trains = true, .refusals = true});
}

// In TCP's ports, as rdma_cm and whoever listens by a number have them too.
Result<Host::ReservedPort, int> ReservePort() {
  auto reservation = std::make_shared<PortReservation>();
  int error = EAFNOSUPPORT;
  for (const char* any : {"::", "0.0.0.0"}) {
    error = reservation->Reserve(*SocketAddress::Parse(any, 0), {.alone = true});
    if (error == 0) {
      const uint16_t port = reservation->address().port();
      return Host::ReservedPort{.port = port, .held = std::move(reservation)};
    }
    if (error != EAFNOSUPPORT && error != EADDRNOTAVAIL) break;
  }
  return error;
}

Result<Host, int> OpenHost(Network& network, const Carriage& carriage) {
  Host host{.network = &network, .list_addresses = ListHostAddresses, .source_for = KernelsSourceFor};
  if (!carriage.udp && !carriage.native) return EINVAL;
  if (PcapFile* const file = PcapIfAsked()) {
    host.tap = [file](const SocketAddress& from, const SocketAddress& to, std::span<const uint8_t> packet) {
      if (IpFrame::SameFamily(from, to) && packet.size() <= SctpPacket::kMost) file->Append(SctpPacket{from, to, packet});
    };
  }
  if (carriage.udp) {
    auto udp = OpenUdp(network, carriage.udp_port);
    if (!udp) return udp.error();
    host.udp = std::move(*udp);
  }
  if (carriage.native) {
    auto native4 = network.OpenDatagram(*SocketAddress::Parse("0.0.0.0", 0), {.protocol = IPPROTO_SCTP});
    if (!native4) return native4.error();
    host.native4 = std::move(*native4);
    auto native6 = network.OpenDatagram(*SocketAddress::Parse("::", 0), {.protocol = IPPROTO_SCTP});
    if (!native6 && native6.error() != EAFNOSUPPORT && native6.error() != EADDRNOTAVAIL) return native6.error();
    if (native6) host.native6 = std::move(*native6);
    host.reserve_port = ReservePort;
  }
  return host;
}

// Of one process, and reached for ever from its child's.
struct Entry {
  Entry(Host host, Entry* of_parent) : stack(FillFromKernel), sctp(stack, std::move(host)), of_parent(of_parent) {}
  Stack stack;
  HostSctp sctp;
  Entry* of_parent;
};
std::atomic<Entry*> g_current{nullptr};

Entry* Current() {
  Entry* const entry = g_current.load(std::memory_order_acquire);
  return entry != nullptr && entry->stack.InThisProcess() ? entry : nullptr;
}

// The kernel's. A child's network is another.
Result<Sctp*, int> KernelsSctp(Network& network) {
  struct Kernels {
    pid_t process;
    KernelSctp sctp;
  };
  static std::mutex making;
  static Kernels* current = nullptr;  // never destroyed
  if (int error = KernelSctp::Probe()) return error;
  const std::lock_guard lock(making);
  if (current == nullptr || current->process != getpid()) current = new Kernels{getpid(), KernelSctp(network)};
  return &current->sctp;
}

// How long an exit waits for peers: for the next packet of theirs, and in all.
constexpr std::chrono::seconds kExitQuiet{1}, kExitLimit{10};

void AtExit() {
  Entry* const entry = Current();
  if (entry == nullptr) return;
  entry->stack.Drain(kExitQuiet, kExitLimit);
  entry->stack.AbortAll();
}

}  // namespace

void EndAssociationsAtExit() {
  static const int registered = std::atexit(AtExit);
  WEFT_CHECK(registered == 0);
}

Result<Sctp*, int> ProcessSctp(Network& network, const Carriage& carriage) {
  if (carriage.kernel) return KernelsSctp(network);
  if (Entry* const entry = Current()) return &entry->sctp;
  // A fork while another thread is in here leaves it locked in the child: rare, and no lock that is passed on to a
  // child could help.
  static std::mutex making;
  const std::lock_guard lock(making);
  if (Entry* const entry = Current()) return &entry->sctp;
  auto host = OpenHost(network, carriage);
  if (!host) return host.error();
  auto* const entry = new Entry(std::move(*host), g_current.load(std::memory_order_acquire));
  EndAssociationsAtExit();
  g_current.store(entry, std::memory_order_release);
  return &entry->sctp;
}

PacketCounters ProcessPacketCounters() {
  Entry* const entry = Current();
  if (entry == nullptr) return {};
  const Stack::Counters counters = entry->stack.counters();
  return {.packets_in = counters.packets_in,
          .packets_out = counters.packets_out,
          .damaged = counters.damaged,
          .strangers = counters.strangers,
          .not_sent = counters.not_sent,
          .output_batches = counters.output_batches,
          .input_batches = counters.input_batches,
          .posts = counters.posts};
}

}  // namespace weft::transport::sctp
