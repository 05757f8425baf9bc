#include "transport/sctp/kernel/options.h"

#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/high_descriptor.h"
#include "transport/sctp/arguments.h"

namespace weft::transport::sctp {
namespace {

constexpr uint16_t kNever = 0xffff;
constexpr size_t kRoomForAddresses = 64 * sizeof(sockaddr_in6);

template <typename Value>
int Set(int fd, int name, const Value& value, int level = IPPROTO_SCTP) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0 ? 0 : errno;
}
template <typename Value>
bool Get(int fd, int name, Value* value, int level = IPPROTO_SCTP) {
  socklen_t length = sizeof *value;
  return getsockopt(fd, level, name, value, &length) == 0;
}

uint32_t Count(Milliseconds time) { return static_cast<uint32_t>(time.count()); }

int Subscribe(int fd) {
  for (const uint16_t type : {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_SHUTDOWN_EVENT, SCTP_PARTIAL_DELIVERY_EVENT,
                              SCTP_ADAPTATION_INDICATION}) {
    sctp_event event{};
    event.se_assoc_id = SCTP_FUTURE_ASSOC;
    event.se_type = type;
    event.se_on = 1;
    if (int error = Set(fd, SCTP_EVENT, event)) return error;
  }
  return 0;
}

int ApplyTimes(int fd, const Settings& settings) {
  sctp_rtoinfo rto{};
  rto.srto_initial = Count(settings.rto_initial);
  rto.srto_max = Count(settings.rto_max);
  rto.srto_min = Count(settings.rto_min);
  if (int error = Set(fd, SCTP_RTOINFO, rto)) return error;
  sctp_assocparams association{};
  association.sasoc_asocmaxrxt = settings.association_max_retransmissions;
  if (int error = Set(fd, SCTP_ASSOCINFO, association)) return error;
  sctp_initmsg init{};
  init.sinit_num_ostreams = settings.streams_out;
  init.sinit_max_instreams = settings.streams_in;
  init.sinit_max_attempts = settings.association_max_retransmissions;
  init.sinit_max_init_timeo = static_cast<uint16_t>(std::min<int64_t>(settings.rto_max.count(), UINT16_MAX));
  if (int error = Set(fd, SCTP_INITMSG, init)) return error;
  sctp_sack_info sack{};
  sack.sack_delay = Count(settings.sack_delay);
  sack.sack_freq = std::max(settings.sack_frequency, 1u);
  return Set(fd, SCTP_DELAYED_SACK, sack);
}

int ApplyPaths(int fd, const Settings& settings) {
  sctp_paddrparams path{};
  path.spp_flags = settings.heartbeat_interval.count() > 0 ? SPP_HB_ENABLE : SPP_HB_DISABLE;
  path.spp_hbinterval = Count(settings.heartbeat_interval);
  path.spp_pathmaxrxt = settings.path_max_retransmissions;
  if (settings.path_mtu != 0) {
    path.spp_flags |= SPP_PMTUD_DISABLE;
    path.spp_pathmtu = settings.path_mtu;
  }
  if (int error = Set(fd, SCTP_PEER_ADDR_PARAMS, path)) return error;
  sctp_paddrthlds thresholds{};
  thresholds.spt_pathmaxrxt = settings.path_max_retransmissions;
  thresholds.spt_pathpfthld = settings.multipath != Multipath::kConcurrent ? settings.potentially_failed_after : kNever;
  return Set(fd, SCTP_PEER_ADDR_THLDS, thresholds);
}

// The kernel's limits (net.core.wmem_max, rmem_max) hold for who has no privilege: less than was asked for is no error.
int SetBuffer(int fd, int name, int force, uint32_t bytes) {
  const int value = static_cast<int>(bytes / 2);  // the kernel doubles it, and counts what it needs itself
  return Set(fd, force, value, SOL_SOCKET) == 0 ? 0 : Set(fd, name, value, SOL_SOCKET);
}

int Apply(int fd, int family, const Settings& settings, uint16_t udp_port) {
  const int on = 1, off = 0;
  if (family == AF_INET6) {
    if (int error = Set(fd, IPV6_V6ONLY, off, IPPROTO_IPV6)) return error;
    if (int error = Set(fd, SCTP_I_WANT_MAPPED_V4_ADDR, off)) return error;
  }
  if (int error = Set(fd, SCTP_NODELAY, on)) return error;
  if (int error = Set(fd, SCTP_RECVRCVINFO, on)) return error;
  if (int error = Set(fd, SCTP_FRAGMENT_INTERLEAVE, off)) return error;
  if (int error = SetBuffer(fd, SO_SNDBUF, SO_SNDBUFFORCE, settings.send_buffer)) return error;
  if (int error = SetBuffer(fd, SO_RCVBUF, SO_RCVBUFFORCE, settings.receive_buffer)) return error;
  if (settings.share_port) {
    if (int error = Set(fd, SCTP_REUSE_PORT, on)) return error;
  }
  if (settings.adaptation) {
    sctp_setadaptation adaptation{};
    adaptation.ssb_adaptation_ind = *settings.adaptation;
    if (int error = Set(fd, SCTP_ADAPTATION_LAYER, adaptation)) return error;
  }
  if (udp_port != 0) {
    sctp_udpencaps encapsulation{};
    encapsulation.sue_port = htons(udp_port);
    if (int error = Set(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, encapsulation)) return error;
  }
  if (int error = ApplyTimes(fd, settings)) return error;
  if (int error = ApplyPaths(fd, settings)) return error;
  return Subscribe(fd);
}

std::vector<SocketAddress> AddressesOf(int fd, int which) {
  alignas(sctp_getaddrs) uint8_t room[sizeof(sctp_getaddrs) + kRoomForAddresses] = {};
  socklen_t length = sizeof room;
  if (getsockopt(fd, IPPROTO_SCTP, which, room, &length) != 0) return {};
  const auto* list = reinterpret_cast<const sctp_getaddrs*>(room);
  return Unpacked(list->addrs, list->addr_num);
}

}  // namespace

int OpenSocket(int family, const Settings& settings, uint16_t udp_port, int* opened) {
  const int fd = LeaveRoomForSelect(socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_SCTP));
  if (fd < 0) return errno;
  if (int error = Apply(fd, family, settings, udp_port)) {
    close(fd);
    return error;
  }
  *opened = fd;
  return 0;
}

int Bind(int fd, const std::vector<SocketAddress>& addresses, uint16_t port) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    SocketAddress address = addresses[i];
    address.set_port(port);
    if (i > 0) {
      if (setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_BINDX_ADD, address.get(), address.length()) != 0) return errno;
      continue;
    }
    if (bind(fd, address.get(), address.length()) != 0) return errno;
    if (port == 0) port = SocketAddress::Local(fd).port();
  }
  return 0;
}

int ConnectTo(int fd, const std::vector<SocketAddress>& addresses) {
  const auto packed = Packed(addresses);
  const int result = setsockopt(fd, IPPROTO_SCTP, SCTP_SOCKOPT_CONNECTX, packed.data(), static_cast<socklen_t>(packed.size()));
  return result >= 0 || errno == EINPROGRESS ? 0 : errno;
}

std::vector<SocketAddress> LocalAddressesOf(int fd) { return AddressesOf(fd, SCTP_GET_LOCAL_ADDRS); }
std::vector<SocketAddress> PeerAddressesOf(int fd) { return AddressesOf(fd, SCTP_GET_PEER_ADDRS); }

uint16_t UdpPortOf(int fd, const SocketAddress& peer) {
  sctp_udpencaps encapsulation{};
  std::memcpy(&encapsulation.sue_address, peer.get(), peer.length());
  return Get(fd, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation) ? ntohs(encapsulation.sue_port) : uint16_t{0};
}

std::optional<sctp_status> StatusOf(int fd) {
  sctp_status status{};
  if (!Get(fd, SCTP_STATUS, &status)) return std::nullopt;
  return status;
}

std::optional<sctp_paddrinfo> InfoOf(int fd, const SocketAddress& peer) {
  sctp_paddrinfo info{};
  std::memcpy(&info.spinfo_address, peer.get(), peer.length());
  if (!Get(fd, SCTP_GET_PEER_ADDR_INFO, &info)) return std::nullopt;
  return info;
}

int MakePrimary(int fd, const SocketAddress& peer) {
  sctp_prim primary{};
  std::memcpy(&primary.ssp_addr, peer.get(), peer.length());
  return Set(fd, SCTP_PRIMARY_ADDR, primary);
}

std::optional<uint64_t> AcknowledgementsOf(int fd) {
  sctp_assoc_stats statistics{};
  if (!Get(fd, SCTP_GET_ASSOC_STATS, &statistics)) return std::nullopt;
  return statistics.sas_isacks;
}

std::optional<uint32_t> UnacknowledgedOf(int fd) {
  uint32_t memory[SK_MEMINFO_VARS] = {};
  if (!Get(fd, SO_MEMINFO, &memory, SOL_SOCKET)) return std::nullopt;
  return memory[SK_MEMINFO_WMEM_QUEUED];
}

}  // namespace weft::transport::sctp
