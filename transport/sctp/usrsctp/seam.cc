#include "transport/sctp/usrsctp/seam.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/iovec_length.h"
#include "transport/sctp/usrsctp/header_sizes.h"

// --- usrsctp's own, which its public header does not name (0.9.5: user_socketvar.h, sctp_input.h, sctp_output.h,
// sctputil.h, user_mbuf.h) ---

struct mbuf;
struct sctp_sndrcvinfo;

struct uio {
  iovec* uio_iov;
  int uio_iovcnt;
  off_t uio_offset;
  ssize_t uio_resid;
  int uio_segflg;
  int uio_rw;
};

extern "C" {
void sctp_common_input_processing(mbuf** packet, int ip_header_length, int offset, int length, sockaddr* from,
                                  sockaddr* to, void* header, void* chunk, uint8_t compute_crc, uint8_t ecn_bits,
                                  uint32_t vrf_id, uint16_t udp_port);
int sctp_lower_sosend(struct socket* socket, sockaddr* to, uio* data, mbuf* packet, mbuf* control, int flags,
                      sctp_sndrcvinfo* info);
int sctp_sorecvmsg(struct socket* socket, uio* data, mbuf** packet, sockaddr* from, int from_length, int* flags,
                   sctp_sndrcvinfo* info, int filling_info);
void sctp_init_vrf_list(int vrf_id);
void sctp_send_hb(void* association, void* path, int locked);
void sctp_audit_retranmission_queue(void* queues);
int sctp_calculate_rto(void* association, void* queues, void* path, timeval* sent, int kind);
int sctp_t3rxt_timer(void* endpoint, void* association, void* path);
void sctp_ulp_notify(uint32_t notification, void* association, uint32_t error, void* data, int locked);
unsigned m_length(mbuf* first, mbuf** last);
void m_copydata(const mbuf* first, int offset, int length, char* to);
void m_freem(mbuf* first);
}

namespace weft::transport::sctp {
namespace {

constexpr size_t kMostPacket = 65536;
constexpr uint32_t kInterfaceDown = 3;  // SCTP_NOTIFY_INTERFACE_DOWN

World* g_world = nullptr;
const std::vector<LocalAddress>* g_addresses = nullptr;  // while usrsctp asks for them
const Packet* g_incoming = nullptr;                      // during Input()
std::span<const iovec> g_pieces;                         // during SendPieces() and ReceivePieces()
ptrdiff_t g_queues_in_association = 0;                   // from the first association on
bool g_more_follows = false;                             // during SendPieces()
bool g_no_heartbeat = false;                             // during SendQueued()
// Associations, until PathsAreKnown(). Never destroyed: the network's thread runs while the process ends.
std::vector<const void*>& g_in_doubt = *new std::vector<const void*>;

SocketAddress Address4(const uint8_t* host, const uint8_t* port) {
  sockaddr_in in{};
  in.sin_family = AF_INET;
  std::memcpy(&in.sin_addr, host, 4);
  if (port != nullptr) std::memcpy(&in.sin_port, port, 2);
  return *SocketAddress::From(reinterpret_cast<const sockaddr*>(&in), sizeof in);
}

SocketAddress Address6(const uint8_t* host, const uint8_t* port) {
  sockaddr_in6 in6{};
  in6.sin6_family = AF_INET6;
  std::memcpy(&in6.sin6_addr, host, 16);
  if (port != nullptr) std::memcpy(&in6.sin6_port, port, 2);
  return *SocketAddress::From(reinterpret_cast<const sockaddr*>(&in6), sizeof in6);
}

// Where the first DATA chunk begins: those come last. Its length: there is none.
size_t DataIn(std::span<const uint8_t> packet) {
  for (size_t at = kCommonHeader; at + 4 <= packet.size();) {
    if (packet[at] == SCTP_DATA) return at;
    const size_t length = size_t{packet[at + 2]} << 8 | packet[at + 3];
    at += (std::max<size_t>(length, 4) + 3) & ~size_t{3};
  }
  return packet.size();
}

// A chain of mbufs with an IP header that usrsctp made, and one of UDP if the packet goes over it.
int Output(mbuf* chain, int family, const void* association) {
  const size_t length = m_length(chain, nullptr);
  const size_t ip_header = family == AF_INET ? kIp4Header : kIp6Header;
  uint8_t* const bytes =
      length >= ip_header + kCommonHeader && length <= kMostPacket ? g_world->RoomForOutput(length) : nullptr;
  if (bytes != nullptr) m_copydata(chain, 0, static_cast<int>(length), reinterpret_cast<char*>(bytes));
  m_freem(chain);
  if (bytes == nullptr) return ENOBUFS;
  const bool udp = bytes[family == AF_INET ? 9 : 6] == IPPROTO_UDP;
  const uint8_t* const port = udp ? bytes + ip_header + 2 : nullptr;
  Packet packet;
  if (family == AF_INET) {
    packet.from = Address4(bytes + 12, nullptr);
    packet.to = Address4(bytes + 16, port);
  } else {
    packet.from = Address6(bytes + 8, nullptr);
    packet.to = Address6(bytes + 24, port);
  }
  const size_t headers = ip_header + (udp ? kUdpHeader : 0);
  uint8_t* const sctp = bytes + headers;
  packet.bytes = {sctp, length - headers};
  // usrsctp hears that there is no way to the address, and sends the DATA elsewhere.
  const size_t data_at = DataIn(packet.bytes);
  const bool in_doubt = std::find(g_in_doubt.begin(), g_in_doubt.end(), association) != g_in_doubt.end();
  const bool cut = data_at < packet.bytes.size() && !g_world->TakesData(packet, in_doubt);
  if (cut) packet.bytes = packet.bytes.first(data_at);
  if (packet.bytes.size() == kCommonHeader) return EHOSTUNREACH;
  const int error = g_world->Output(packet);
  return cut ? EHOSTUNREACH : error;
}

// As usrsctp wants addresses of the network: the scope of a link-local one is not looked at.
socklen_t ToSockaddr(const SocketAddress& address, uint16_t sctp_port, sockaddr_in6* out) {
  std::memcpy(out, address.get(), address.length());
  if (address.family() == AF_INET) {
    reinterpret_cast<sockaddr_in*>(out)->sin_port = sctp_port;
  } else {
    out->sin6_port = sctp_port;
    out->sin6_scope_id = 0;
    out->sin6_flowinfo = 0;
  }
  return address.length();
}

// The pieces in place of the one that usrsctp's public functions made. `copies` has kMostPiecesInside of room; usrsctp
// changes them.
void UsePieces(uio* data, iovec* copies) {
  std::copy(g_pieces.begin(), g_pieces.end(), copies);
  data->uio_iov = copies;
  data->uio_iovcnt = static_cast<int>(g_pieces.size());
}

}  // namespace

// --- what usrsctp calls in place of what it would ---

extern "C" {

// sctp_userspace_ip_output and sctp_userspace_ip6_output, from sctp_output.c.
void weft_usrsctp_ip_output(int* result, mbuf* packet, void* /*route*/, void* association, uint32_t /*vrf_id*/) {
  *result = Output(packet, AF_INET, association);
}
void weft_usrsctp_ip6_output(int* result, mbuf* packet, void* /*route*/, void* association, uint32_t /*vrf_id*/) {
  *result = Output(packet, AF_INET6, association);
}

// sctp_calculate_cksum, from sctp_output.c: World::Output() does it, over contiguous bytes.
uint32_t weft_usrsctp_no_checksum(mbuf* /*packet*/, uint32_t /*offset*/) { return 0; }

// pthread_mutex_lock, pthread_mutex_unlock and pthread_mutex_trylock, from everywhere: there is one lock around all of it (Stack).
int weft_usrsctp_no_lock(pthread_mutex_t*) { return 0; }
int weft_usrsctp_no_unlock(pthread_mutex_t*) { return 0; }
int weft_usrsctp_no_trylock(pthread_mutex_t*) { return 0; }

// pthread_mutex_trylock, from sctp_lower_sosend(), in front of its output: whoever has an association's lock sends what was queued.
int weft_usrsctp_may_output(pthread_mutex_t*) { return g_more_follows ? EBUSY : 0; }

// sctp_send_hb, from sctp_setopt().
void weft_usrsctp_send_hb(void* association, void* path, int locked) {
  if (!g_no_heartbeat) sctp_send_hb(association, path, locked);
}

// sctp_ulp_notify, from sctp_timer.c: at once one packet of DATA would go where the last one timed out.
void weft_usrsctp_notify(uint32_t notification, void* association, uint32_t error, void* data, int locked) {
  if (notification == kInterfaceDown) g_in_doubt.push_back(association);
  sctp_ulp_notify(notification, association, error, data, locked);
}

// sctp_mtu_size_reset, from sctp_output.c: for the 1500 bytes of a route that usrsctp makes up. Who accepts an
// association would keep them, whatever its path carries.
void weft_usrsctp_keep_mtu(void* /*endpoint*/, void* /*association*/, uint32_t /*mtu*/) {}

// sctp_common_input_processing, from usrsctp_conninput(), whose addresses are those of AF_CONN: ours are the network's.
void weft_usrsctp_input(mbuf** packet, int ip_header_length, int offset, int length, sockaddr* /*from*/,
                        sockaddr* /*to*/, void* header, void* chunk, uint8_t /*compute_crc*/, uint8_t ecn_bits,
                        uint32_t vrf_id, uint16_t /*udp_port*/) {
  sockaddr_in6 from{}, to{};
  uint16_t ports[2];
  std::memcpy(ports, header, sizeof ports);
  ToSockaddr(g_incoming->from, ports[0], &from);
  ToSockaddr(g_incoming->to, ports[1], &to);
  sctp_common_input_processing(packet, ip_header_length, offset, length, reinterpret_cast<sockaddr*>(&from),
                               reinterpret_cast<sockaddr*>(&to), header, chunk, /*compute_crc=*/0, ecn_bits, vrf_id,
                               htons(g_incoming->from.port()));
}

// sctp_lower_sosend and sctp_sorecvmsg, from usrsctp_sendv() and usrsctp_recvv().
int weft_usrsctp_sosend(struct socket* socket, sockaddr* to, uio* data, mbuf* packet, mbuf* control, int flags,
                        sctp_sndrcvinfo* info) {
  iovec copies[kMostPiecesInside];
  UsePieces(data, copies);
  return sctp_lower_sosend(socket, to, data, packet, control, flags, info);
}
int weft_usrsctp_sorecvmsg(struct socket* socket, uio* data, mbuf** packet, sockaddr* from, int from_length, int* flags,
                           sctp_sndrcvinfo* info, int filling_info) {
  iovec copies[kMostPiecesInside];
  UsePieces(data, copies);
  return sctp_sorecvmsg(socket, data, packet, from, from_length, flags, info, filling_info);
}

// getifaddrs and freeifaddrs, from sctp_init_ifns_for_vrf().
int weft_usrsctp_getifaddrs(ifaddrs** list) {
  *list = nullptr;
  if (g_addresses == nullptr) return 0;
  for (const LocalAddress& address : *g_addresses) {
    auto* const entry = new ifaddrs{};
    auto* const storage = new sockaddr_in6{};
    ToSockaddr(address.address, 0, storage);
    entry->ifa_addr = reinterpret_cast<sockaddr*>(storage);
    entry->ifa_name = const_cast<char*>(address.interface.c_str());
    entry->ifa_next = *list;
    *list = entry;
  }
  return 0;
}
void weft_usrsctp_freeifaddrs(ifaddrs* list) {
  while (list != nullptr) {
    delete reinterpret_cast<sockaddr_in6*>(list->ifa_addr);
    delete std::exchange(list, list->ifa_next);
  }
}

// gettimeofday, from everywhere: for round trips, cookies and path states.
int weft_usrsctp_gettimeofday(timeval* now, void* /*zone*/) {
  const uint64_t microseconds = g_world->NowMicroseconds();
  now->tv_sec = static_cast<time_t>(microseconds / 1'000'000);
  now->tv_usec = static_cast<suseconds_t>(microseconds % 1'000'000);
  return 0;
}

// sctp_calculate_rto, from sctp_input.c, which each association calls when it comes up: `queues` is the part of it (struct sctp_association) that
// sctp_audit_retranmission_queue() wants, always at the same place.
int weft_usrsctp_calculate_rto(void* association, void* queues, void* path, timeval* sent, int kind) {
  g_queues_in_association = static_cast<char*>(queues) - static_cast<char*>(association);
  return sctp_calculate_rto(association, queues, path, sent, kind);
}

// sctp_t3rxt_timer, from sctputil.c. It marks DATA for retransmission that was sent longer than a round trip ago, and counts anew all that is marked, but
// passes over what is younger, although reports of a gap may have marked that before. Once its count is 0 usrsctp sends nothing again and stops its timers;
// HEARTBEATs are all that is exchanged then, for ever. Hence its own audit, which it never calls.
int weft_usrsctp_t3rxt_timer(void* endpoint, void* association, void* path) {
  const int gone = sctp_t3rxt_timer(endpoint, association, path);
  if (gone == 0 && g_queues_in_association != 0) sctp_audit_retranmission_queue(static_cast<char*>(association) + g_queues_in_association);
  return gone;
}

// init_random, read_random and finish_random, from everywhere: no descriptor of /dev/urandom.
void weft_usrsctp_init_random() {}
void weft_usrsctp_finish_random() {}
void weft_usrsctp_read_random(void* to, size_t count) { g_world->FillRandom(to, count); }

// The C library's, which code that is not compiled for shared libraries could not reach there.
extern const in6_addr weft_usrsctp_in6addr_any;
const in6_addr weft_usrsctp_in6addr_any = IN6ADDR_ANY_INIT;

// pthread_create, for its iterator: it would only carry out operations on all associations at once, and automatic
// ASCONF, which nobody here asks for.
int weft_usrsctp_no_thread(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*) { return EAGAIN; }

}  // extern "C"

void StartUsrsctp(World& world, bool udp, const std::vector<LocalAddress>& addresses) {
  g_world = &world;
  g_addresses = &addresses;
  // The number of the port is nobody's business here: World::Output() knows from which it sends.
  usrsctp_init_nothreads(udp ? 9 : 0, nullptr, nullptr);
  g_addresses = nullptr;
}

bool StopUsrsctp() { return usrsctp_finish() == 0; }

void AddAddresses(const std::vector<LocalAddress>& addresses) {
  g_addresses = &addresses;
  sctp_init_vrf_list(0);
  g_addresses = nullptr;
}

void PathsAreKnown() { g_in_doubt.clear(); }

bool Input(const Packet& packet) {
  constexpr size_t kShortest = kCommonHeader + 4;  // a chunk's header
  if (packet.bytes.size() < kShortest || packet.bytes.size() > kMostPacket - kIp6Header) return false;
  static constexpr uint8_t kZeros[4] = {};
  const auto bytes = packet.bytes;
  uint32_t crc = Crc32c(bytes.first(kChecksumOffset));
  crc = Crc32cExtend(crc, kZeros);
  crc = Crc32cExtend(crc, bytes.subspan(kCommonHeader));
  if (crc != LoadCrc32c(bytes.data() + kChecksumOffset)) return false;
  g_incoming = &packet;
  usrsctp_conninput(nullptr, bytes.data(), bytes.size(), 0);
  g_incoming = nullptr;
  return true;
}

ssize_t SendPieces(struct socket* socket, std::span<const iovec> pieces, sctp_sndinfo info, bool more) {
  WEFT_CHECK(pieces.size() <= kMostPiecesInside);
  static char never_read;
  g_pieces = pieces;
  g_more_follows = more;
  const ssize_t sent = usrsctp_sendv(socket, &never_read, TotalLength(pieces), nullptr, 0, &info, sizeof info,
                                     SCTP_SENDV_SNDINFO, /*flags=*/0);
  g_more_follows = false;
  g_pieces = {};
  return sent;
}

// A HEARTBEAT that is asked for has usrsctp send all that waits. The HEARTBEAT itself is left out.
void SendQueued(struct socket* socket, const SocketAddress& peer) {
  sctp_paddrparams ask{};
  std::memcpy(&ask.spp_address, peer.get(), peer.length());
  ask.spp_flags = SPP_HB_DEMAND;
  g_no_heartbeat = true;
  usrsctp_setsockopt(socket, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &ask, sizeof ask);
  g_no_heartbeat = false;
}

ssize_t ReceivePieces(struct socket* socket, std::span<const iovec> pieces, sctp_rcvinfo* info, int* flags) {
  WEFT_CHECK(pieces.size() <= kMostPiecesInside);
  static char never_written;
  g_pieces = pieces;
  socklen_t length = sizeof *info;
  unsigned type = 0;
  const ssize_t received =
      usrsctp_recvv(socket, &never_written, TotalLength(pieces), nullptr, nullptr, info, &length, &type, flags);
  g_pieces = {};
  return received;
}

}  // namespace weft::transport::sctp
