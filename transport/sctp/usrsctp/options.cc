#include "transport/sctp/usrsctp/options.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "transport/sctp/arguments.h"
#include "transport/sctp/usrsctp/header_sizes.h"

namespace weft::transport::sctp {
namespace {

// Of usrsctp, but not in its public header (0.9.5: netinet/sctp.h, sctp_uio.h).
constexpr int kPeerAddressThresholds = 0x23;  // SCTP_PEER_ADDR_THLDS (RFC 7829 section 7.1)
constexpr int kCmtOnOff = 0x1200;             // SCTP_CMT_ON_OFF
struct Thresholds {
  sockaddr_storage address;
  sctp_assoc_t association;
  uint16_t path_retransmissions, potentially_failed, primary_switch;
};
constexpr uint16_t kNever = 0xffff;

template <typename Value>
int Set(struct socket* socket, int name, const Value& value, int level = IPPROTO_SCTP) {
  return usrsctp_setsockopt(socket, level, name, &value, sizeof value) == 0 ? 0 : errno;
}

uint32_t Count(Milliseconds time) { return static_cast<uint32_t>(time.count()); }

int Subscribe(struct socket* socket) {
  for (const uint16_t type : {SCTP_ASSOC_CHANGE, SCTP_PEER_ADDR_CHANGE, SCTP_SHUTDOWN_EVENT,
                              SCTP_PARTIAL_DELIVERY_EVENT, SCTP_ADAPTATION_INDICATION}) {
    sctp_event event{};
    event.se_assoc_id = SCTP_FUTURE_ASSOC;
    event.se_type = type;
    event.se_on = 1;
    if (int error = Set(socket, SCTP_EVENT, event)) return error;
  }
  return 0;
}

int ApplyTimes(struct socket* socket, const Settings& settings) {
  sctp_rtoinfo rto{};
  rto.srto_initial = Count(settings.rto_initial);
  rto.srto_max = Count(settings.rto_max);
  rto.srto_min = Count(settings.rto_min);
  if (int error = Set(socket, SCTP_RTOINFO, rto)) return error;
  sctp_assocparams association{};
  association.sasoc_asocmaxrxt = settings.association_max_retransmissions;
  if (int error = Set(socket, SCTP_ASSOCINFO, association)) return error;
  sctp_initmsg init{};
  init.sinit_num_ostreams = settings.streams_out;
  init.sinit_max_instreams = settings.streams_in;
  init.sinit_max_attempts = settings.association_max_retransmissions;
  init.sinit_max_init_timeo = static_cast<uint16_t>(std::min<int64_t>(settings.rto_max.count(), UINT16_MAX));
  if (int error = Set(socket, SCTP_INITMSG, init)) return error;
  sctp_sack_info sack{};
  sack.sack_delay = Count(settings.sack_delay);
  sack.sack_freq = std::max(settings.sack_frequency, 1u);
  return Set(socket, SCTP_DELAYED_SACK, sack);
}

// Both kinds of IP get that of the longer header if both may be used.
uint32_t RoomForChunks(int family, uint32_t mtu, bool over_udp) {
  return (mtu - (family == AF_INET ? kIp4Header : kIp6Header) - uint32_t{kCommonHeader} - (over_udp ? kUdpHeader : 0)) & ~3u;
}

int ApplyPaths(struct socket* socket, int family, const Settings& settings, uint32_t mtu, bool over_udp) {
  sctp_paddrparams path{};
  path.spp_address.ss_family = static_cast<sa_family_t>(family);
  path.spp_assoc_id = SCTP_FUTURE_ASSOC;
  path.spp_flags = SPP_PMTUD_DISABLE | (settings.heartbeat_interval.count() > 0 ? SPP_HB_ENABLE : SPP_HB_DISABLE);
  path.spp_hbinterval = Count(settings.heartbeat_interval);
  path.spp_pathmaxrxt = settings.path_max_retransmissions;
  path.spp_pathmtu = RoomForChunks(family, mtu, over_udp);
  if (int error = Set(socket, SCTP_PEER_ADDR_PARAMS, path)) return error;
  if (int error = SetThresholds(socket, family, settings, /*leave_early=*/true)) return error;
  sctp_assoc_value concurrent{};
  concurrent.assoc_value = settings.multipath == Multipath::kFailover ? 0 : 1;
  return Set(socket, kCmtOnOff, concurrent);
}

int Apply(struct socket* socket, int family, const Settings& settings, uint32_t mtu, bool over_udp) {
  const uint32_t on = 1, off = 0;
  if (usrsctp_set_non_blocking(socket, 1) != 0) return errno;
  if (int error = Set(socket, SCTP_NODELAY, on)) return error;
  if (int error = Set(socket, SCTP_RECVRCVINFO, on)) return error;
  if (int error = Set(socket, SCTP_FRAGMENT_INTERLEAVE, off)) return error;
  if (int error = Set(socket, SO_SNDBUF, static_cast<int>(settings.send_buffer), SOL_SOCKET)) return error;
  if (int error = Set(socket, SO_RCVBUF, static_cast<int>(settings.receive_buffer), SOL_SOCKET)) return error;
  if (int error = Set(socket, SCTP_PARTIAL_DELIVERY_POINT, settings.receive_buffer / 2)) return error;
  if (settings.share_port) {
    if (int error = Set(socket, SCTP_REUSE_PORT, on)) return error;
  }
  if (settings.adaptation) {
    sctp_setadaptation adaptation{};
    adaptation.ssb_adaptation_ind = *settings.adaptation;
    if (int error = Set(socket, SCTP_ADAPTATION_LAYER, adaptation)) return error;
  }
  if (int error = ApplyTimes(socket, settings)) return error;
  if (int error = ApplyPaths(socket, family, settings, mtu, over_udp)) return error;
  return Subscribe(socket);
}

}  // namespace

int SetThresholds(struct socket* socket, int family, const Settings& settings, bool leave_early) {
  Thresholds thresholds{};
  thresholds.address.ss_family = static_cast<sa_family_t>(family);
  thresholds.path_retransmissions = settings.path_max_retransmissions;
  thresholds.potentially_failed =
      leave_early && settings.multipath != Multipath::kConcurrent ? settings.potentially_failed_after : kNever;
  thresholds.primary_switch = kNever;
  return Set(socket, kPeerAddressThresholds, thresholds);
}

int OpenSocket(int family, const Settings& settings, uint32_t mtu, bool over_udp, struct socket** opened) {
  struct socket* const socket = usrsctp_socket(family, SOCK_STREAM, IPPROTO_SCTP, nullptr, nullptr, 0, nullptr);
  if (socket == nullptr) return errno;
  if (int error = Apply(socket, family, settings, mtu, over_udp)) {
    usrsctp_close(socket);
    return error;
  }
  *opened = socket;
  return 0;
}

int SetPacketSize(struct socket* socket, int family, uint32_t mtu, bool over_udp) {
  sctp_paddrparams path{};
  path.spp_address.ss_family = static_cast<sa_family_t>(family);
  path.spp_assoc_id = SCTP_CURRENT_ASSOC;
  path.spp_flags = SPP_PMTUD_DISABLE;
  path.spp_pathmtu = RoomForChunks(family, mtu, over_udp);
  return Set(socket, SCTP_PEER_ADDR_PARAMS, path);
}

int Bind(struct socket* socket, int family, const std::vector<SocketAddress>& addresses, uint16_t port) {
  for (size_t i = 0; i < addresses.size(); ++i) {
    SocketAddress address = addresses[i];
    address.set_port(port);
    auto* const name = const_cast<sockaddr*>(address.get());
    if (i > 0) {
      if (usrsctp_bindx(socket, name, 1, SCTP_BINDX_ADD_ADDR) != 0) return errno;
      continue;
    }
    if (usrsctp_bind(socket, name, address.length()) != 0) return errno;
    const auto bound = LocalAddressesOf(socket);
    if (port == 0 && !bound.empty()) port = bound[0].port();
  }
  return 0;
}

int SetUdpPort(struct socket* socket, uint16_t port) {
  sctp_udpencaps encapsulation{};
  encapsulation.sue_address.ss_family = AF_INET;
  encapsulation.sue_assoc_id = SCTP_FUTURE_ASSOC;
  encapsulation.sue_port = htons(port);
  return Set(socket, SCTP_REMOTE_UDP_ENCAPS_PORT, encapsulation);
}

uint16_t UdpPortOf(struct socket* socket, const SocketAddress& peer) {
  sctp_udpencaps encapsulation{};
  std::memcpy(&encapsulation.sue_address, peer.get(), peer.length());
  socklen_t length = sizeof encapsulation;
  if (usrsctp_getsockopt(socket, IPPROTO_SCTP, SCTP_REMOTE_UDP_ENCAPS_PORT, &encapsulation, &length) != 0) return 0;
  return ntohs(encapsulation.sue_port);
}

std::vector<SocketAddress> LocalAddressesOf(struct socket* socket) {
  sockaddr* list = nullptr;
  const int count = usrsctp_getladdrs(socket, 0, &list);
  if (count <= 0) return {};
  auto addresses = Unpacked(list, static_cast<size_t>(count));
  usrsctp_freeladdrs(list);
  return addresses;
}

std::vector<SocketAddress> PeerAddressesOf(struct socket* socket) {
  sockaddr* list = nullptr;
  const int count = usrsctp_getpaddrs(socket, 0, &list);
  if (count <= 0) return {};
  auto addresses = Unpacked(list, static_cast<size_t>(count));
  usrsctp_freepaddrs(list);
  return addresses;
}

}  // namespace weft::transport::sctp
