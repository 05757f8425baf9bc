#include "transport/sctp/usrsctp/association.h"

#include <netinet/in.h>
#include <usrsctp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/dma_scope.h"
#include "base/iovec_length.h"
#include "transport/sctp/usrsctp/options.h"

namespace weft::transport::sctp {
namespace {

static_assert(kMostPieces <= kMostPiecesInside);
constexpr size_t kLongestReason = 128;
constexpr size_t kMostQueued = 128 * 1024;
constexpr Duration kAskEvery = std::chrono::milliseconds(500);  // a path that is inactive, whether it works again

// The first bytes of what was received, for a look at a notification.
size_t CopyOut(std::span<const iovec> pieces, size_t count, std::span<uint8_t> to) {
  size_t done = 0;
  for (const iovec& piece : pieces) {
    const size_t now = std::min({piece.iov_len, count - done, to.size() - done});
    if (now > 0) std::memcpy(to.data() + done, piece.iov_base, now);
    done += now;
  }
  return done;
}

// False: it is shorter.
template <typename Notification>
bool Read(std::span<const uint8_t> bytes, Notification* notification) {
  if (bytes.size() < sizeof *notification) return false;
  std::memcpy(notification, bytes.data(), sizeof *notification);
  return true;
}

PathState StateOf(int32_t state) {
  return state == SCTP_UNCONFIRMED ? PathState::kUnconfirmed
         : state == SCTP_ACTIVE    ? PathState::kActive
                                   : PathState::kInactive;
}

std::optional<SocketAddress> AddressIn(const sockaddr_storage& storage) {
  return SocketAddress::From(reinterpret_cast<const sockaddr*>(&storage), sizeof storage);
}

}  // namespace

UsrsctpAssociation::UsrsctpAssociation(Stack& stack, struct socket* socket, uint16_t port)
    : stack_(stack), socket_(socket), port_(port) {
  stack_.Add(socket_, *this);
}

UsrsctpAssociation::~UsrsctpAssociation() {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  CloseLocked();
}

void UsrsctpAssociation::CloseLocked() {
  const bool awaits_peer = !end_ && udp_port_ == 0;
  std::vector<PeerKey> awaited = awaits_peer ? known_ : std::vector<PeerKey>();
  Forget();
  stack_.Close(std::exchange(socket_, nullptr), *this, /*abort=*/!shut_down_);
  if (shut_down_) {
    stack_.LeavePort(port_, std::move(awaited));
  } else {
    stack_.ports().Forget(port_);
  }
}

void UsrsctpAssociation::Watch(std::shared_ptr<ReadyHandler> handler) {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  handler_ = std::move(handler);
  stack_.Rouse(*this);
}

void UsrsctpAssociation::SetReading(bool reading) {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  if (reading) lent_until_ = 0;
  if (std::exchange(reading_, reading) == reading || !reading) return;
  if (may_read_) stack_.Rouse(*this);
}

// --- to the peer ---

IoResult UsrsctpAssociation::Send(const OutgoingMessage& message) {
  const auto failed = [](int error) { return IoResult{.kind = IoResult::Kind::kFailed, .error = error}; };
  if (!stack_.InThisProcess()) return failed(ECHILD);
  const size_t length = TotalLength(message.pieces);
  if (length == 0 || message.pieces.size() > kMostPieces) return failed(EINVAL);
  Stack::Locked locked(stack_);
  if (message.more) locked.SetMoreFollows();
  if (end_) return failed(end_->error != 0 ? end_->error : EPIPE);
  if (shut_down_) return failed(EPIPE);
  const bool parts = in_parts_.has_value() || !message.end_of_record;
  if (in_parts_ && (in_parts_->stream != message.stream || in_parts_->ppid != message.ppid ||
                    in_parts_->unordered != message.unordered)) {
    return failed(EINVAL);
  }
  if (parts != explicit_end_) {
    const int on = parts;
    if (usrsctp_setsockopt(socket_, IPPROTO_SCTP, SCTP_EXPLICIT_EOR, &on, sizeof on) != 0) return failed(errno);
    explicit_end_ = parts;
  }
  sctp_sndinfo info{};
  info.snd_sid = message.stream;
  info.snd_ppid = htonl(message.ppid);
  info.snd_flags =
      static_cast<uint16_t>((message.unordered ? SCTP_UNORDERED : 0) | (parts && message.end_of_record ? SCTP_EOR : 0));
  ssize_t sent;
  {
    const DmaScope dma;
    // Not so much that what is long, and goes out in many packets, waits for its end.
    const bool queues = message.more && queued_bytes_ + length < kMostQueued;
    sent = SendPieces(socket_, message.pieces, info, queues);
    if (sent >= 0) queued_bytes_ = queues ? queued_bytes_ + length : 0;
  }
  if (sent < 0 &&
      (errno == EWOULDBLOCK || errno == ENOBUFS || errno == ENOENT)) {  // ENOENT: there is no association yet
    wants_room_ = true;
    return {.kind = IoResult::Kind::kWouldBlock};
  }
  if (sent < 0) return failed(errno);
  const auto bytes = static_cast<size_t>(sent);
  if (parts) {
    if (message.end_of_record && bytes == length) {
      in_parts_.reset();
    } else {
      in_parts_ = message;
      in_parts_->pieces = {};
    }
    if (bytes < length) wants_room_ = true;
  }
  if (bytes == 0) return {.kind = IoResult::Kind::kWouldBlock};
  return {.kind = IoResult::Kind::kDone, .bytes = bytes};
}

bool UsrsctpAssociation::DamageNextPacket() {
  if (!Usable()) return false;
  Stack::Locked locked(stack_);
  locked.SetMoreFollows();
  stack_.outbox().DamageNext();
  return true;
}

void UsrsctpAssociation::Flush() {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  if (std::exchange(queued_bytes_, 0) != 0 && !peer_addresses_.empty()) SendQueued(socket_, peer_addresses_[0]);
}

Interest UsrsctpAssociation::Poll() {
  if (!stack_.InThisProcess()) return {.read = true, .write = true};  // to hear that it is gone
  return stack_.Poll(*this);
}

void UsrsctpAssociation::Lend() {
  if (stack_.InThisProcess()) stack_.Lend(*this);
}

void UsrsctpAssociation::Recall() {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  if (may_read_) stack_.Rouse(*this);
}

WatchId UsrsctpAssociation::PacketWatch() const {
  if (!Usable()) return 0;
  const Stack::Locked locked(stack_);
  return stack_.PacketWatch(udp_port_ != 0, peer_addresses_.empty() ? AF_INET : peer_addresses_[0].family());
}

void UsrsctpAssociation::Shutdown() {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  if (std::exchange(shut_down_, true) || end_) return;
  usrsctp_shutdown(socket_, SHUT_WR);
}

void UsrsctpAssociation::Abort(const std::string& reason) {
  if (!Usable()) return;
  const Stack::Locked locked(stack_);
  if (end_) return;
  std::string text = reason.substr(0, kLongestReason);
  if (text.empty()) text = "aborted";
  sctp_sndinfo info{};
  info.snd_flags = SCTP_ABORT;
  iovec piece{.iov_base = text.data(), .iov_len = text.size()};
  SendPieces(socket_, {&piece, 1}, info, /*more=*/false);
  shut_down_ = false;
  End(Received::Kind::kFailed, ECONNABORTED);
  stack_.Rouse(*this);
}

// --- from the peer ---

Received UsrsctpAssociation::Receive(std::span<const iovec> into) {
  if (!stack_.InThisProcess()) return {.kind = Received::Kind::kFailed, .error = ECHILD};
  const Stack::Locked locked(stack_);
  if (end_) {
    may_read_ = false;
    return *end_;
  }
  if (into.size() > kMostPieces) into = into.first(kMostPieces);
  while (true) {
    sctp_rcvinfo info{};
    int flags = 0;
    ssize_t received;
    {
      const DmaScope dma;
      received = ReceivePieces(socket_, into, &info, &flags);
    }
    if (received < 0 && (errno == EWOULDBLOCK || errno == EAGAIN || (errno == ENOTCONN && !connected_once_))) {
      may_read_ = false;
      return {};
    }
    if (received < 0) return End(Received::Kind::kFailed, WhyLost(errno));
    if (received == 0) return End(Received::Kind::kEnded, 0);
    if ((flags & MSG_NOTIFICATION) != 0) {
      std::array<uint8_t, 512> bytes{};
      const size_t length = CopyOut(into, static_cast<size_t>(received), bytes);
      while ((flags & MSG_EOR) == 0) {  // of an ABORT with much to say; the front is enough
        uint8_t rest[256];
        const iovec piece{.iov_base = rest, .iov_len = sizeof rest};
        flags = 0;
        if (ReceivePieces(socket_, {&piece, 1}, &info, &flags) <= 0) break;
      }
      if (auto result = OnNotification({bytes.data(), length})) return *result;
      continue;
    }
    Received result{.kind = Received::Kind::kMessage, .bytes = static_cast<size_t>(received)};
    result.info.stream = info.rcv_sid;
    result.info.ssn = info.rcv_ssn;
    result.info.ppid = ntohl(info.rcv_ppid);
    result.info.unordered = (info.rcv_flags & SCTP_UNORDERED) != 0;
    result.info.end_of_record = (flags & MSG_EOR) != 0;
    result.info.begins = !std::exchange(in_message_, !result.info.end_of_record);
    return result;
  }
}

std::optional<Received> UsrsctpAssociation::OnNotification(std::span<const uint8_t> bytes) {
  sctp_notification::sctp_tlv header;
  if (!Read(bytes, &header)) return std::nullopt;
  Received result{.kind = Received::Kind::kEvent};
  switch (header.sn_type) {
    case SCTP_ASSOC_CHANGE: {
      sctp_assoc_change change;
      if (!Read(bytes, &change)) return std::nullopt;
      switch (change.sac_state) {
        case SCTP_COMM_UP:
          return Up(Event::Kind::kUp);
        case SCTP_RESTART:
          return Up(Event::Kind::kRestarted);
        case SCTP_SHUTDOWN_COMP:
          return End(Received::Kind::kEnded, 0);
        default:
          break;
      }
      // The ABORT's chunk and its first cause are behind the notification.
      constexpr size_t kCause = sizeof change + 4;
      if (!connected_once_ && bytes.size() >= kCause + 4 && bytes[kCause] == 0 && bytes[kCause + 1] == kPortIsAnothers)
        return End(Received::Kind::kFailed, EADDRINUSE);
      int error = 0;
      socklen_t length = sizeof error;
      if (usrsctp_getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error == 0) error = ECONNRESET;
      return End(Received::Kind::kFailed, WhyLost(error));
    }
    case SCTP_PEER_ADDR_CHANGE: {
      sctp_paddr_change change;
      const auto address = Read(bytes, &change) ? AddressIn(change.spc_aaddr) : std::nullopt;
      if (!address) return std::nullopt;
      Refresh();
      result.event.kind = Event::Kind::kPathChanged;
      result.event.path = *address;
      const bool active = change.spc_state == SCTP_ADDR_AVAILABLE || change.spc_state == SCTP_ADDR_CONFIRMED;
      const bool inactive = change.spc_state == SCTP_ADDR_UNREACHABLE || change.spc_state == SCTP_ADDR_REMOVED;
      result.event.path_state = active ? PathState::kActive : inactive ? PathState::kInactive : PathState::kUnconfirmed;
      return result;
    }
    case SCTP_SHUTDOWN_EVENT:
      shut_down_ = true;
      result.event.kind = Event::Kind::kPeerShutsDown;
      return result;
    case SCTP_PARTIAL_DELIVERY_EVENT:
      in_message_ = false;
      result.event.kind = Event::Kind::kRecordAborted;
      return result;
    default:
      return std::nullopt;
  }
}

Received UsrsctpAssociation::Up(Event::Kind kind) {
  connected_once_ = true;
  if (const auto work = std::exchange(when_up_, nullptr)) work();
  in_message_ = false;
  in_parts_.reset();
  Refresh();
  Received result{.kind = Received::Kind::kEvent};
  result.event.kind = kind;
  if (const auto status = Status()) {
    result.event.streams_in = status->sstat_instrms;
    result.event.streams_out = status->sstat_outstrms;
  }
  // The peer's indication, if it sent one, is the very next in the queue.
  sctp_adaptation_event indication{};
  iovec piece{.iov_base = &indication, .iov_len = sizeof indication};
  sctp_rcvinfo info{};
  int flags = MSG_PEEK;
  const bool there = ReceivePieces(socket_, {&piece, 1}, &info, &flags) == sizeof indication &&
                     (flags & MSG_NOTIFICATION) != 0 && indication.sai_type == SCTP_ADAPTATION_INDICATION;
  if (there) {
    piece = {.iov_base = &indication, .iov_len = sizeof indication};
    flags = 0;
    ReceivePieces(socket_, {&piece, 1}, &info, &flags);
    result.event.adaptation = indication.sai_adaptation_ind;
  } else if (kind == Event::Kind::kRestarted) {
    result.event.adaptation = IndicationOfLastInit();
  }
  // What did not fit while connecting may fit now.
  if (wants_room_) stack_.Rouse(*this);
  return result;
}

std::optional<uint32_t> UsrsctpAssociation::IndicationOfLastInit() const {
  const PeerRecord* last = nullptr;
  for (const PeerKey& key : known_) {
    const auto record = stack_.peers().find(key);
    if (record == stack_.peers().end()) continue;
    if (last == nullptr || record->second.init_packet > last->init_packet) last = &record->second;
  }
  return last == nullptr ? std::nullopt : last->init_adaptation;
}

// usrsctp says ECONNABORTED of each association that it ended itself.
int UsrsctpAssociation::WhyLost(int error) const {
  if (error != ECONNABORTED) return error;
  const bool broke_rules = std::any_of(known_.begin(), known_.end(), [this](const PeerKey& key) {
    const auto record = stack_.peers().find(key);
    return record != stack_.peers().end() && record->second.broke_rules;
  });
  return broke_rules ? EPROTO : ETIMEDOUT;
}

Received UsrsctpAssociation::End(Received::Kind kind, int error) {
  end_ = Received{.kind = kind, .error = error};
  return *end_;
}

// --- addresses and paths ---

void UsrsctpAssociation::Know(const std::vector<SocketAddress>& peer_addresses, uint16_t udp_port) {
  peer_addresses_ = peer_addresses;
  udp_port_ = udp_port;
  for (const SocketAddress& address : peer_addresses) {
    const PeerKey key(address, htons(address.port()), port_);
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    known_.push_back(key);
    stack_.peers()[key].udp_port = udp_port;
    stack_.Accepted(key);
  }
  for (const PeerKey& key : known_) {
    const auto known = stack_.peers().find(key);
    if (known != stack_.peers().end()) known->second.one_of_several = known_.size() > 1;
  }
}

void UsrsctpAssociation::Refresh() {
  auto addresses = PeerAddressesOf(socket_);
  if (addresses.empty()) return;
  // The first time of an association that a peer began says from which port its INIT came.
  const uint16_t udp_port = known_.empty() ? UdpPortOf(socket_, addresses[0]) : udp_port_;
  Know(addresses, udp_port);
}

void UsrsctpAssociation::Forget() {
  for (const PeerKey& key : known_) stack_.peers().erase(key);
  known_.clear();
}

std::vector<SocketAddress> UsrsctpAssociation::LocalAddresses() const {
  if (!Usable()) return {};
  const Stack::Locked locked(stack_);
  return LocalAddressesOf(socket_);
}

std::vector<SocketAddress> UsrsctpAssociation::PeerAddresses() const {
  if (!Usable()) return {};
  const Stack::Locked locked(stack_);
  return peer_addresses_;
}

uint16_t UsrsctpAssociation::PeerUdpPort() const {
  if (!Usable()) return 0;
  const Stack::Locked locked(stack_);
  return udp_port_;
}

std::optional<sctp_status> UsrsctpAssociation::Status() const {
  sctp_status status{};
  socklen_t length = sizeof status;
  if (usrsctp_getsockopt(socket_, IPPROTO_SCTP, SCTP_STATUS, &status, &length) != 0) return std::nullopt;
  return status;
}

std::vector<Path> UsrsctpAssociation::Paths() const {
  if (!Usable()) return {};
  const Stack::Locked locked(stack_);
  return PathsLocked();
}

std::vector<Path> UsrsctpAssociation::PathsLocked() const {
  const auto status = Status();
  const auto primary = status ? AddressIn(status->sstat_primary.spinfo_address) : std::nullopt;
  std::vector<Path> paths;
  for (const SocketAddress& address : PeerAddressesOf(socket_)) {
    Path& path = paths.emplace_back();
    path.address = address;
    path.primary = primary && primary->SameHost(address);
    if (const auto info = InfoOf(address)) {
      path.state = StateOf(info->spinfo_state);
      path.smoothed_rtt = Milliseconds(info->spinfo_srtt);
      path.rto = Milliseconds(info->spinfo_rto);
      path.congestion_window = info->spinfo_cwnd;
      path.mtu = info->spinfo_mtu;
    }
    const auto known = stack_.peers().find(PeerKey(address, htons(address.port()), port_));
    if (known == stack_.peers().end()) continue;
    const PeerRecord& record = known->second;
    path.packets_out = record.packets_out;
    path.bytes_out = record.bytes_out;
    path.packets_in = record.packets_in;
    path.bytes_in = record.bytes_in;
    path.failures = record.failures;
  }
  return paths;
}

std::optional<sctp_paddrinfo> UsrsctpAssociation::InfoOf(const SocketAddress& address) const {
  sctp_paddrinfo info{};
  std::memcpy(&info.spinfo_address, address.get(), address.length());
  socklen_t length = sizeof info;
  if (usrsctp_getsockopt(socket_, IPPROTO_SCTP, SCTP_GET_PEER_ADDR_INFO, &info, &length) != 0) return std::nullopt;
  return info;
}

// In concurrent transfer usrsctp goes on sending to paths that are inactive, one packet for each timeout, and what is
// in it holds up everything behind it.
void UsrsctpAssociation::LookAtPaths(Time now) {
  if (peer_addresses_.size() < 2) return;
  std::vector<PeerRecord*>& records = stack_.scratch();
  records.clear();
  for (const SocketAddress& address : peer_addresses_) {
    const auto known = stack_.peers().find(PeerKey(address, htons(address.port()), port_));
    records.push_back(known == stack_.peers().end() ? nullptr : &known->second);
  }
  bool any_active = false;
  for (size_t i = 0; i < records.size(); ++i) {
    const auto info = records[i] == nullptr ? std::nullopt : InfoOf(peer_addresses_[i]);
    if (!info) continue;
    any_active |= info->spinfo_state == SCTP_ACTIVE;
    const bool inactive = info->spinfo_state == SCTP_INACTIVE;
    if (std::exchange(records[i]->inactive, inactive) || !inactive) continue;
    ++records[i]->failures;
    records[i]->ask_at = now;
  }
  for (size_t i = 0; i < records.size(); ++i) {
    if (records[i] == nullptr) continue;
    records[i]->passed_over = records[i]->inactive && any_active;
  }
  for (size_t i = 0; i < records.size(); ++i) {
    // usrsctp would not, as long as it has DATA for the path. The first time this sends what was held back meanwhile.
    if (records[i] == nullptr || !records[i]->inactive || now < records[i]->ask_at) continue;
    records[i]->ask_at = now + kAskEvery;
    sctp_paddrparams ask{};
    std::memcpy(&ask.spp_address, peer_addresses_[i].get(), peer_addresses_[i].length());
    ask.spp_flags = SPP_HB_DEMAND;
    usrsctp_setsockopt(socket_, IPPROTO_SCTP, SCTP_PEER_ADDR_PARAMS, &ask, sizeof ask);
  }
}

int UsrsctpAssociation::SetPrimary(const SocketAddress& path) {
  if (!Usable()) return ECHILD;
  const Stack::Locked locked(stack_);
  sctp_setprim primary{};
  std::memcpy(&primary.ssp_addr, path.get(), path.length());
  return usrsctp_setsockopt(socket_, IPPROTO_SCTP, SCTP_PRIMARY_ADDR, &primary, sizeof primary) == 0 ? 0 : errno;
}

size_t UsrsctpAssociation::FragmentationPoint() const {
  if (!Usable()) return 0;
  const Stack::Locked locked(stack_);
  const auto status = Status();
  return status ? status->sstat_fragmentation_point : 0;
}

bool UsrsctpAssociation::HasUnacknowledged() const {
  if (!Usable()) return false;
  const Stack::Locked locked(stack_);
  const auto status = Status();
  return status && (status->sstat_unackdata > 0 || status->sstat_penddata > 0);
}

bool UsrsctpAssociation::Advances() {
  if (!Usable()) return true;
  const Stack::Locked locked(stack_);
  uint32_t acknowledged = 0;  // a sum that changes when one of them does
  for (const PeerKey& key : known_) {
    const auto record = stack_.peers().find(key);
    if (record != stack_.peers().end()) acknowledged += record->second.cumulative_ack;
  }
  const bool news = std::exchange(acknowledged_, acknowledged) != acknowledged;
  if (news) return true;
  const auto status = Status();
  return !status || status->sstat_rwnd == 0 || (status->sstat_unackdata == 0 && status->sstat_penddata == 0);
}

}  // namespace weft::transport::sctp
