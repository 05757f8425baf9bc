#include "transport/sctp/usrsctp/stack.h"

#include <arpa/inet.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "base/check.h"
#include "base/crc32c.h"
#include "transport/sctp/usrsctp/guard.h"
#include "transport/sctp/usrsctp/header_sizes.h"

namespace weft::transport::sctp {
namespace {

using std::chrono::milliseconds;

constexpr size_t kReceiveBatch = 32;         // packets of one system call
constexpr size_t kFirstLook = 4;      // of the first of a look: those of a thread that spins mostly find none
constexpr size_t kRoom = 65536;       // of one that comes
constexpr int kBatchesOfOneLook = 4;  // so that one thread does not stay in here while packets keep coming
constexpr uint8_t kCookieEcho = 10, kCookieAck = 11;
// Associations that came and were not accepted yet: what is known of their peers.
constexpr size_t kMostYoung = 4096;
constexpr std::chrono::seconds kYouthLasts{10};
constexpr size_t kLeastPacket = 16;   // the common header, and a chunk's
constexpr size_t kLeastInit = 20;     // up to its tag
constexpr Duration kRouteLasts = milliseconds(500);
constexpr size_t kMostRoutes = 10'000;

// usrsctp's timers are counted in these while something goes on. An association that was quiet for a while has only
// timers that are longer than that, so that for it they may be coarse, and a process that waits hardly wakes up.
constexpr Duration kFineTick = milliseconds(10);
constexpr Duration kCoarseTick = milliseconds(100);
constexpr Duration kQuiet = std::chrono::seconds(2);

std::atomic<unsigned> g_forks{0};

// Whom usrsctp calls; under its lock.
Stack* g_stack_of_upcalls = nullptr;

unsigned Forks() {
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { g_forks.fetch_add(1, std::memory_order_relaxed); });
  WEFT_CHECK(registered == 0);
  return g_forks.load(std::memory_order_relaxed);
}

// The chunk types (RFC 9260 section 3.2) whose packets answer one of the peer's without an association of ours: from
// where that went to.
bool AnswersFromThere(uint8_t chunk) {
  return chunk == SCTP_INITIATION_ACK || chunk == SCTP_ABORT_ASSOCIATION || chunk == SCTP_SHUTDOWN_COMPLETE;
}

// An ABORT of ours because the peer broke the rules (RFC 9260 sections 3.3.7 and 3.3.10.13). One after too many
// timeouts gives no cause.
bool IsAbortForViolation(std::span<const uint8_t> packet) {
  return packet.size() >= 20 && packet[12] == SCTP_ABORT_ASSOCIATION && packet[16] == 0 && packet[17] == 13;
}

// What usrsctp is to do that it would not by default, and not to do that it would: nothing that is not used is open to
// a peer.
void Configure() {
  usrsctp_sysctl_set_sctp_asconf_enable(0);
  usrsctp_sysctl_set_sctp_auto_asconf(0);
  usrsctp_sysctl_set_sctp_auth_enable(0);
  usrsctp_sysctl_set_sctp_reconfig_enable(0);
  usrsctp_sysctl_set_sctp_pr_enable(0);
  usrsctp_sysctl_set_sctp_ecn_enable(0);  // the bits of IP headers do not come this far
  usrsctp_sysctl_set_sctp_nrsack_enable(0);
  usrsctp_sysctl_set_sctp_pktdrop_enable(0);
  usrsctp_sysctl_set_sctp_cmt_on_off(1);  // else no socket may choose it; each does (options.cc)
  usrsctp_sysctl_set_sctp_cmt_use_dac(1);
  // With a limit of four packets at a time, its default, what is in flight never fills the first window, which then
  // never grows.
  usrsctp_sysctl_set_sctp_max_burst_default(0);
  usrsctp_sysctl_set_sctp_max_chunks_on_queue(4096);
  // A peer that does not read for a while, and says so, is not dead: the probes of its window are no reason to abort
  // (RFC 9260 section 6.1, A).
  usrsctp_sysctl_set_sctp_max_retran_chunk(0);
  // A listener whose backlog is full says so, as TCP's would by a reset.
  usrsctp_sysctl_set_sctp_abort_if_one_2_one_hits_limit(1);
}

// The chunk type of the peer's that ends an association that was closed in order.
bool IsLastWord(uint8_t chunk) {
  return chunk == SCTP_SHUTDOWN_ACK || chunk == SCTP_SHUTDOWN_COMPLETE || chunk == SCTP_ABORT_ASSOCIATION;
}

}  // namespace

// Of one socket of a host.
class Stack::SocketHandler : public ReadyHandler {
 public:
  SocketHandler(Stack& stack, Host& host) : stack_(stack), host_(host) {}
  void OnReady(Interest) override {
    if (!stack_.InThisProcess()) return;
    // What comes here although it is lent, nobody else came for.
    const bool any = stack_.Pump(host_, /*caller_dispatches=*/true);
    stack_.dispatcher_.Dispatch(/*lent_too=*/any);
  }
  // The thread may hold what handlers take.
  void OnDriven(Interest, bool) override { stack_.Pump(host_, /*caller_dispatches=*/false); }

 private:
  Stack& stack_;
  Host& host_;
};

Stack::Locked::Locked(Stack& stack, bool caller_dispatches) : stack_(stack), caller_dispatches_(caller_dispatches) {
  stack_.mutex_.lock();
  stack_.AdvanceClock();
}

Stack::Locked::~Locked() {
  if (!more_follows_) stack_.Flush();
  const auto due = caller_dispatches_ ? Dispatcher::Due::kNothing : stack_.dispatcher_.WhatIsDue();
  stack_.mutex_.unlock();
  stack_.dispatcher_.Arrange(due);
}

Stack::Stack(std::function<void(void*, size_t)> random)
    : born_(Forks()), random_(std::move(random)), dispatcher_(mutex_, [this] { return InThisProcess(); }) {}

bool Stack::InThisProcess() const { return born_ == g_forks.load(std::memory_order_relaxed); }

void Stack::Attach(Host& host) {
  {
    std::lock_guard lock(mutex_);
    const bool first = hosts_.empty();
    hosts_.push_back(&host);
    if (host.tap) outbox_.SetTapped();
    for (const HostAddress& one : host.list_addresses()) {
      host_of_[one.address.host()] = &host;
      known_.push_back({one.address, one.interface});
    }
    if (first) {
      dispatcher_.SetNetwork(*host.network);
      now_ = ticked_ = activity_ = host.network->Now();
      StartUsrsctp(*this, /*udp=*/true, known_);
      Configure();
      incoming_bytes_.resize(kReceiveBatch * kRoom);
      incoming_.resize(kReceiveBatch);
      for (size_t i = 0; i < kReceiveBatch; ++i) incoming_[i].room = {.iov_base = &incoming_bytes_[i * kRoom], .iov_len = kRoom};
    } else {
      AddAddresses(known_);
    }
  }
  for (DatagramSocket* socket : {host.udp.get(), host.native4.get(), host.native6.get()}) {
    if (socket != nullptr)
      host.watches.push_back(
          host.network->Watch(*socket, {.read = true}, std::make_shared<SocketHandler>(*this, host)));
  }
}

void Stack::LookForAddresses(Host& host, const std::vector<SocketAddress>& wanted) {
  const bool all = std::all_of(wanted.begin(), wanted.end(), [this](const SocketAddress& one) {
    return std::any_of(known_.begin(), known_.end(),
                       [&](const LocalAddress& has) { return has.address.SameHost(one); });
  });
  if (all) return;
  bool any = false;
  for (const HostAddress& one : host.list_addresses()) {
    const bool known =
        std::any_of(known_.begin(), known_.end(), [&](const LocalAddress& has) { return has.address == one.address; });
    if (known) continue;
    known_.push_back({one.address, one.interface});
    host_of_[one.address.host()] = &host;
    any = true;
  }
  if (any) AddAddresses(known_);
}

// --- packets ---

bool Stack::Pump(Host& host, bool caller_dispatches, const Watched* calm) {
  if (!InThisProcess()) return false;
  const Locked locked(*this, caller_dispatches);
  const bool any = TakeAll(host);
  // What woke the network's thread and is no packet may be a refusal.
  if (host.udp != nullptr && ((caller_dispatches && !any) || host.udp->MayHaveRefusal())) TakeRefusals(host);
  if (calm != nullptr && !calm->may_have_room_) dispatcher_.Calm(*calm);
  return any;
}

Interest Stack::Poll(Watched& mine) {
  const Locked locked(*this);
  for (Host* const host : hosts_) TakeAll(*host);
  const Interest ready{.read = mine.may_read_, .write = std::exchange(mine.may_have_room_, false)};
  if (ready.write) mine.wants_room_ = false;
  dispatcher_.Calm(mine);
  return ready;
}

bool Stack::TakeAll(Host& host) {
  bool any = false;
  for (DatagramSocket* socket : {host.udp.get(), host.native4.get(), host.native6.get()}) {
    for (int look = 0; socket != nullptr && look < kBatchesOfOneLook; ++look) {
      const size_t most = look == 0 ? kFirstLook : kReceiveBatch;
      const size_t count = socket->Receive({incoming_.data(), most});
      counters_.input_batches += count > 0;
      for (size_t i = 0; i < count; ++i) {
        const IncomingDatagram& datagram = incoming_[i];
        if (datagram.cut_off) continue;
        const std::span<const uint8_t> bytes(static_cast<const uint8_t*>(datagram.room.iov_base), datagram.length);
        const size_t each = datagram.each != 0 ? datagram.each : std::max<size_t>(bytes.size(), 1);
        for (size_t at = 0; at < bytes.size(); at += each) {
          Take(host, datagram, bytes.subspan(at, std::min(each, bytes.size() - at)), socket != host.udp.get());
        }
      }
      any |= count > 0;
      if (count < most) break;
    }
  }
  if (any) {
    activity_ = now_ = host.network->Now();
    ScheduleTick();
  }
  return any;
}

void Stack::Take(const Host& host, const IncomingDatagram& datagram, std::span<const uint8_t> bytes, bool native) {
  Packet packet{.from = datagram.from, .to = datagram.to, .bytes = bytes};
  if (packet.from.family() == 0 || packet.to.family() != packet.from.family()) return;
  if (native) {
    packet.from.set_port(0);
    if (packet.from.family() == AF_INET) {  // the kernel gives the IP header too
      const size_t header = 4 * size_t{bytes[0] & 0xfu};
      if (header < 20 || header > bytes.size()) return;
      packet.bytes = packet.bytes.subspan(header);
    }
  }
  if (packet.bytes.size() < kLeastPacket) {
    ++counters_.packets_in;
    ++counters_.damaged;
    return;
  }
  uint16_t ports[2];
  std::memcpy(ports, packet.bytes.data(), sizeof ports);
  // Every process of this host that has the privilege gets packets that came in IP: what is for another's port is not
  // to be answered.
  if (native && !ports_.contains(ports[1])) return;
  ++counters_.packets_in;
  if (host.tap) ShowIncoming(host, packet, native);
  // usrsctp would send to whatever UDP port a packet came from, before it looks at the verification tag: a stranger on
  // the peer's host could have an association's packets sent to himself.
  const PeerKey key(packet.from, ports[0], ports[1]);
  const auto known = peers_.find(key);
  if (IsStranger(packet, key, known)) {
    ++counters_.strangers;
    RefuseStranger(packet);
    return;
  }
  if (known != peers_.end()) {
    ++known->second.packets_in;
    known->second.bytes_in += packet.bytes.size();
  }
  if (!MayEnter(packet.bytes, known != peers_.end())) {
    ++counters_.damaged;
    return;
  }
  if (known != peers_.end()) {
    if (const auto ack = CumulativeAck(packet.bytes)) {
      known->second.cumulative_ack = *ack;
    } else if (const auto init = AsInit(packet.bytes)) [[unlikely]] {
      known->second.init_packet = counters_.packets_in;
      known->second.init_adaptation = init->adaptation;
    }
  }
  if (!Input(packet)) ++counters_.damaged;
  if (ports_.any_leaves() && IsLastWord(packet.bytes[kCommonHeader])) [[unlikely]] ports_.NoteLastWord(key);
}

// Comes from another UDP port than the association's other packets. From our COOKIE ACK on there is one, of which its owner is to hear yet.
bool Stack::IsStranger(const Packet& packet, const PeerKey& key, PeerTable::const_iterator known) const {
  if (known != peers_.end()) return known->second.udp_port != packet.from.port();
  if (packet.from.port() == 0) return false;
  const auto young = young_.find(key);
  return young != young_.end() && young->second.until > now_ && young->second.udp_port != packet.from.port();
}

// A COOKIE ACK answers a cookie of ours (RFC 9260 section 5.1.5): a COOKIE ECHO alone may be forged by any process that can send from the
// peer's address.
void Stack::NoteYoung(const Packet& cookie_ack, const PeerKey& key) {
  if (young_.size() >= kMostYoung) young_.clear();
  young_.insert_or_assign(key, Young{.udp_port = cookie_ack.to.port(), .until = now_ + kYouthLasts});
}

// Two processes of a host, each with a UDP port of its own, may have chosen the same port of SCTP; the other would wait for long. It is told
// that it may not have this association (a restart from another address, RFC 9260 section 3.3.10.11), and tries with another port.
void Stack::RefuseStranger(const Packet& stranger) {
  if (stranger.from.port() == 0 || !MayEnter(stranger.bytes, /*has_association=*/false)) return;
  const auto init = AsInit(stranger.bytes);
  if (!init && stranger.bytes[kCommonHeader] != kCookieEcho) return;
  // A COOKIE ECHO bears our tag, which the T bit says.
  const uint8_t abort[] = {6, init ? uint8_t{0} : uint8_t{1}, 0, 8, 0, kPortIsAnothers, 0, 4};
  constexpr size_t kLength = kCommonHeader + sizeof abort;
  uint32_t tag;
  std::memcpy(&tag, stranger.bytes.data() + 4, sizeof tag);
  if (init) tag = htonl(init->tag);
  uint8_t* const bytes = outbox_.Room(kLength);
  std::memcpy(bytes, stranger.bytes.data() + 2, 2);
  std::memcpy(bytes + 2, stranger.bytes.data(), 2);
  std::memcpy(bytes + 4, &tag, sizeof tag);
  std::memset(bytes + 8, 0, 4);
  std::memcpy(bytes + 12, abort, sizeof abort);
  Host* const host = HostOf(stranger.to);
  if (host != nullptr) outbox_.Add(stranger.to, stranger.from, *host->udp, {bytes, kLength});
}

void Stack::TakeRefusals(Host& host) {
  uint8_t bytes[kLeastInit];
  RefusedDatagram refused;
  while (host.udp->TakeRefusal({bytes, sizeof bytes}, &refused)) {
    if (refused.length >= kLeastPacket) OnRefused(refused, {bytes, std::min(refused.length, sizeof bytes)});
  }
}

// The peer's process is gone, and its kernel says so (RFC 6951 section 5.5). To SCTP that is as an ABORT with the T bit, which bears the tag that
// the packet had, and usrsctp looks whether it is the peer's. An INIT has none: its ABORT bears our tag, which the INIT proposed (RFC 9260
// section 10, ICMP6 and ICMP7).
void Stack::OnRefused(const RefusedDatagram& refused, std::span<const uint8_t> sent) {
  if (refused.from.family() != refused.to.family()) return;
  uint16_t ports[2];
  std::memcpy(ports, sent.data(), sizeof ports);
  const auto known = peers_.find(PeerKey(refused.to, ports[1], ports[0]));
  if (known == peers_.end() || known->second.udp_port != refused.to.port()) return;
  constexpr uint8_t kInit = 1, kAbort = 6;
  const uint8_t* tag = sent.data() + 4;
  const bool tagless = std::all_of(tag, tag + 4, [](uint8_t byte) { return byte == 0; });
  if (tagless && (sent.size() < kLeastInit || sent[12] != kInit)) return;
  if (tagless && known->second.one_of_several) return;  // the next INIT goes to another address
  const uint8_t chunk[] = {kAbort, static_cast<uint8_t>(tagless ? 0 : 1), 0, 4};
  uint8_t abort[kLeastPacket] = {};
  std::memcpy(abort, sent.data() + 2, 2);
  std::memcpy(abort + 2, sent.data(), 2);
  std::memcpy(abort + 4, tagless ? sent.data() + kLeastPacket : tag, 4);
  std::memcpy(abort + 12, chunk, sizeof chunk);
  StoreCrc32c(abort + 8, Crc32c(abort));
  Input({.from = refused.to, .to = refused.from, .bytes = abort});
}

// What was sent here was shown then.
void Stack::ShowIncoming(const Host& host, const Packet& packet, bool native) {
  uint16_t source;
  std::memcpy(&source, packet.bytes.data(), sizeof source);
  const bool our_port = native ? ports_.contains(source) : packet.from.port() == host.udp->LocalAddress().port();
  const auto is_from = [&](const LocalAddress& one) { return one.address.SameHost(packet.from); };
  if (our_port && std::any_of(known_.begin(), known_.end(), is_from)) return;
  SocketAddress to = packet.to;
  to.set_port(native ? 0 : host.udp->LocalAddress().port());
  host.tap(packet.from, to, packet.bytes);
}

void Stack::OnPacket(const SocketAddress& from, const SocketAddress& to, const DatagramSocket& socket, std::span<const uint8_t> packet) {
  const Host& host = *hosts_[0];
  SocketAddress source = from;
  source.set_port(&socket == host.udp.get() ? socket.LocalAddress().port() : 0);
  if (host.tap) host.tap(source, to, packet);
}

uint8_t* Stack::RoomForOutput(size_t bytes) { return outbox_.Room(bytes); }

PeerKey Stack::KeyOf(const Packet& outgoing) {
  uint16_t ports[2];
  std::memcpy(ports, outgoing.bytes.data(), sizeof ports);
  return PeerKey(outgoing.to, ports[1], ports[0]);
}

bool Stack::TakesData(const Packet& packet, bool in_doubt) {
  const auto known = peers_.find(KeyOf(packet));
  return known == peers_.end() || !(known->second.passed_over || (in_doubt && known->second.one_of_several));
}

int Stack::Output(const Packet& packet) {
  Host* const host = HostOf(packet.from);
  if (host == nullptr) return EADDRNOTAVAIL;
  const bool udp = packet.to.port() != 0;
  DatagramSocket* const socket = udp                             ? host->udp.get()
                                 : packet.to.family() == AF_INET ? host->native4.get()
                                                                 : host->native6.get();
  if (socket == nullptr) return EPROTONOSUPPORT;
  const auto from = SourceFor(*host, packet);
  if (!from) return EHOSTUNREACH;  // then usrsctp tries another path at once
  outbox_.Add(*from, packet.to, *socket, packet.bytes);

  const PeerKey key = KeyOf(packet);
  if (const auto known = peers_.find(key); known != peers_.end()) {
    ++known->second.packets_out;
    known->second.bytes_out += packet.bytes.size();
    known->second.broke_rules |= IsAbortForViolation(packet.bytes);
  } else if (udp && packet.bytes[kCommonHeader] == kCookieAck) {
    NoteYoung(packet, key);
  }
  return 0;
}

Host* Stack::HostOf(const SocketAddress& address) {
  if (hosts_.size() == 1) return hosts_[0];
  const auto found = host_of_.find(address.host());
  return found == host_of_.end() ? nullptr : found->second;
}

// usrsctp knows no routes: of several addresses that an association has here it takes any. The kernel's choice leads
// out on the link that leads there, so that paths have nothing in common. An answer goes out from where the question
// came to.
std::optional<SocketAddress> Stack::SourceFor(Host& host, const Packet& packet) {
  if (AnswersFromThere(packet.bytes[12])) return packet.from;
  uint16_t port;
  std::memcpy(&port, packet.bytes.data(), sizeof port);
  const auto* const allowed = ports_.AddressesOf(port);
  if (allowed == nullptr) return packet.from;
  if (routes_.size() > kMostRoutes) routes_.clear();
  Route& route = routes_[PeerKey(packet.to, 0, 0)];
  if (route.until <= now_) route = {.source = host.source_for(packet.to), .until = now_ + kRouteLasts};
  if (!route.source) return std::nullopt;
  if (route.source->family() == 0) return packet.from;
  const bool ours = allowed->empty() ? host_of_.contains(route.source->host())
                                     : std::any_of(allowed->begin(), allowed->end(),
                                                  [&](const auto& one) { return one.SameHost(*route.source); });
  return ours ? *route.source : packet.from;
}

void Stack::Flush() {
  if (outbox_.empty()) return;
  outbox_.Flush();
  activity_ = now_;
  ScheduleTick();
}

void Stack::OnSent(size_t packets) {
  ++counters_.output_batches;
  counters_.packets_out += packets;
}

void Stack::OnNotSent(const SocketAddress& to, int error) {
  ++counters_.not_sent;
  if (error != EAGAIN) routes_.erase(PeerKey(to, 0, 0));
}

// --- time ---

uint64_t Stack::NowMicroseconds() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(now_.time_since_epoch()).count());
}

void Stack::AdvanceClock() {
  if (hosts_.empty()) return;
  now_ = hosts_[0]->network->Now();
  if (now_ - ticked_ < kFineTick) return;
  const auto elapsed = std::chrono::duration_cast<milliseconds>(now_ - ticked_);
  ticked_ += elapsed;
  usrsctp_handle_timers(static_cast<uint32_t>(std::min<int64_t>(elapsed.count(), INT32_MAX)));
  ports_.Expire(now_);
  for (auto& [socket, watched] : sockets_) watched->LookAtPaths(now_);
  PathsAreKnown();
}

void Stack::ScheduleTick() {
  if (std::exchange(ticking_, true)) return;
  Network& network = *hosts_[0]->network;
  network.RunAt(now_ + (now_ - activity_ < kQuiet ? kFineTick : kCoarseTick), [this] { OnTick(); });
}

void Stack::OnTick() {
  if (!InThisProcess()) return;
  {
    const Locked locked(*this, /*caller_dispatches=*/true);
    ticking_ = false;
    // Without a socket there are associations that end, for a while.
    if (!sockets_.empty() || ports_.any_leaves() || now_ - activity_ < Ports::kLeaveLasts) ScheduleTick();
  }
  dispatcher_.Dispatch(/*lent_too=*/false);
}

// --- sockets of usrsctp ---

void Stack::Add(struct socket* socket, Watched& watched) {
  sockets_[socket] = &watched;
  usrsctp_set_upcall(socket, &Stack::OnUpcall, &watched);
  g_stack_of_upcalls = this;
  activity_ = now_;
  ScheduleTick();
}

void Stack::Close(struct socket* socket, Watched& watched, bool abort) {
  sockets_.erase(socket);
  dispatcher_.Calm(watched);
  usrsctp_set_upcall(socket, nullptr, nullptr);
  if (abort) {
    const linger now{.l_onoff = 1, .l_linger = 0};
    usrsctp_setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  usrsctp_close(socket);
}

void Stack::OnUpcall(struct socket*, void* watched, int) { g_stack_of_upcalls->Rouse(*static_cast<Watched*>(watched)); }

// --- the rest ---

WatchId Stack::PacketWatch(bool udp, int family) const {
  const Host& host = *hosts_[0];
  const size_t native = (host.udp != nullptr ? 1 : 0) + (family == AF_INET6 && host.native4 != nullptr ? 1 : 0);
  const size_t at = udp ? 0 : native;
  return at < host.watches.size() ? host.watches[at] : 0;
}

std::vector<std::vector<Path>> Stack::AllPaths() {
  std::vector<std::vector<Path>> all;
  if (!InThisProcess()) return all;
  const Locked locked(*this);
  for (const auto& [socket, watched] : sockets_) {
    if (auto paths = watched->PathsLocked(); !paths.empty()) all.push_back(std::move(paths));
  }
  return all;
}

Stack::Counters Stack::counters() const {
  const std::lock_guard lock(mutex_);
  Counters counters = counters_;
  counters.posts = dispatcher_.posts();
  return counters;
}

// A socket that was closed in order is not ours any more: usrsctp counts its association as established until all that
// waited is acknowledged and the SHUTDOWN is out (RFC 3873, sctpCurrEstab). Whoever answers that over UDP and finds nobody is
// refused; in IP he would go on answering.
bool Stack::HasUnacknowledged() const {
  uint32_t open = 0;
  for (const auto& [socket, watched] : sockets_) {
    sctp_status status{};
    socklen_t length = sizeof status;
    if (usrsctp_getsockopt(socket, IPPROTO_SCTP, SCTP_STATUS, &status, &length) != 0) continue;
    if (status.sstat_unackdata > 0 || status.sstat_penddata > 0) return true;
    open += status.sstat_state == SCTP_ESTABLISHED || status.sstat_state == SCTP_SHUTDOWN_PENDING ||
            status.sstat_state == SCTP_SHUTDOWN_RECEIVED;
  }
  struct sctpstat statistics{};
  usrsctp_get_stat(&statistics);
  if (statistics.sctps_currestab > open) return true;
  return ports_.awaits_last_word();
}

void Stack::Drain(milliseconds quiet, milliseconds most) {
  if (!InThisProcess()) return;
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + most;
  auto heard_at = Clock::now();
  uint64_t heard = 0;
  for (; Clock::now() < std::min(heard_at + quiet, end); std::this_thread::sleep_for(std::chrono::microseconds(200))) {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) continue;
    if (!HasUnacknowledged()) return;
    if (std::exchange(heard, counters_.packets_in) != counters_.packets_in) heard_at = Clock::now();
  }
}

void Stack::AbortAll() {
  if (!InThisProcess()) return;
  // A thread may have been stopped inside.
  for (int attempt = 0; !mutex_.try_lock(); ++attempt) {
    if (attempt == 100) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
  const linger now{.l_onoff = 1, .l_linger = 0};
  for (auto& [socket, watched] : sockets_) {
    usrsctp_set_upcall(socket, nullptr, nullptr);
    usrsctp_setsockopt(socket, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    sctp_sndinfo info{};
    info.snd_flags = SCTP_ABORT;
    static constexpr char kReason[] = "the process ended";
    iovec piece{.iov_base = const_cast<char*>(kReason), .iov_len = sizeof kReason - 1};
    SendPieces(socket, {&piece, 1}, info, /*more=*/false);
  }
  Flush();
  mutex_.unlock();
}

}  // namespace weft::transport::sctp
