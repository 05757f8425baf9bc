#include "transport/sctp/kernel/association.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/iovec_length.h"
#include "base/uncancelled.h"
#include "transport/sctp/kernel/options.h"

namespace weft::transport::sctp {
namespace {

constexpr size_t kLongestNotification = 512;

template <typename Value>
bool Read(std::span<const uint8_t> bytes, Value* value) {
  if (bytes.size() < sizeof *value) return false;
  std::memcpy(value, bytes.data(), sizeof *value);
  return true;
}

PathState StateOf(int32_t state) {
  switch (state) {
    case SCTP_ACTIVE:
    case SCTP_PF:
      return PathState::kActive;
    case SCTP_UNCONFIRMED:
      return PathState::kUnconfirmed;
    default:
      return PathState::kInactive;
  }
}

std::optional<SocketAddress> AddressIn(const sockaddr_storage& storage) {
  return SocketAddress::From(reinterpret_cast<const sockaddr*>(&storage), sizeof storage);
}

// The first bytes of `pieces`.
std::span<const uint8_t> Gather(std::span<const iovec> pieces, size_t length, std::array<uint8_t, kLongestNotification>& room) {
  size_t at = 0;
  for (const iovec& piece : pieces) {
    const size_t count = std::min({piece.iov_len, length - at, room.size() - at});
    std::memcpy(room.data() + at, piece.iov_base, count);
    at += count;
  }
  return {room.data(), at};
}

// recvmsg(2) of a message, a part of one, or a notification. The result is its.
ssize_t ReceivePieces(int fd, std::span<const iovec> into, sctp_rcvinfo* info, int* flags) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(sctp_rcvinfo))];
  msghdr message{};
  message.msg_iov = const_cast<iovec*>(into.data());
  message.msg_iovlen = into.size();
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t count;
  do {
    count = uncancelled::ReceiveMessage(fd, &message, *flags | MSG_DONTWAIT);
  } while (count < 0 && errno == EINTR);
  if (count < 0) return count;
  *flags = message.msg_flags;
  for (cmsghdr* one = CMSG_FIRSTHDR(&message); one != nullptr; one = CMSG_NXTHDR(&message, one)) {
    if (one->cmsg_level == IPPROTO_SCTP && one->cmsg_type == SCTP_RCVINFO) std::memcpy(info, CMSG_DATA(one), sizeof *info);
  }
  return count;
}

// The kernel refuses what is longer than the whole buffer.
size_t LongestMessage(int fd) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  return getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length) == 0 && bytes > 0 ? static_cast<size_t>(bytes) : 0;
}

int TakeError(int fd) {
  int error = 0;
  socklen_t length = sizeof error;
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 ? error : errno;
}

}  // namespace

KernelAssociation::KernelAssociation(Network& network, KernelAssociations& registry, int fd)
    : registry_(registry), readiness_(std::make_shared<Readiness>(network)), process_(getpid()), longest_(LongestMessage(fd)), fd_(fd) {
  const std::lock_guard lock(registry_.mutex);
  registry_.all.insert(this);
}

KernelAssociation::~KernelAssociation() {
  {
    const std::lock_guard lock(registry_.mutex);
    registry_.all.erase(this);
  }
  Close(/*abort=*/!shut_down_);
}

bool KernelAssociation::Usable() const { return fd_ >= 0 && getpid() == process_; }

void KernelAssociation::Close(bool abort) {
  readiness_->End();
  const std::lock_guard lock(registry_.mutex);  // somebody may ask after its paths
  const int fd = fd_.exchange(-1);
  if (fd < 0) return;
  if (abort && getpid() == process_) {  // a child's copy leaves the association alone
    const linger now = {.l_onoff = 1, .l_linger = 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
  }
  uncancelled::Close(fd);
}

void KernelAssociation::Watch(std::shared_ptr<ReadyHandler> handler) {
  if (!Usable()) return;
  if (int error = Readiness::Begin(readiness_, fd_, std::move(handler))) End(Received::Kind::kFailed, error);
}

void KernelAssociation::SetReading(bool reading) { readiness_->SetReading(reading); }

Interest KernelAssociation::Poll() {
  readiness_->Lend();
  pollfd look = {.fd = fd_, .events = POLLIN | POLLOUT, .revents = 0};
  if (uncancelled::PollNow(&look, 1) <= 0) return {};
  return {.read = (look.revents & ~POLLOUT) != 0, .write = (look.revents & POLLOUT) != 0};
}

// --- messages ---

IoResult KernelAssociation::Send(const OutgoingMessage& message) {
  const auto failed = [](int error) { return IoResult{.kind = IoResult::Kind::kFailed, .error = error}; };
  if (getpid() != process_) return failed(ECHILD);
  const size_t length = TotalLength(message.pieces);
  if (length == 0 || message.pieces.size() > kMostPieces) return failed(EINVAL);
  if (end_) return failed(end_->error != 0 ? end_->error : EPIPE);
  if (shut_down_) return failed(EPIPE);
  if (!up_) {
    readiness_->AwaitRoom();
    return {.kind = IoResult::Kind::kWouldBlock};
  }
  if (message.stream >= streams_out_) return failed(EINVAL);
  if (!in_parts_ && message.end_of_record) return SendWhole(message, message.pieces);
  const size_t before = parts_.size();
  if (length > longest_ - std::min(longest_, before)) return failed(EMSGSIZE);
  for (const iovec& piece : message.pieces) {
    const auto* from = static_cast<const uint8_t*>(piece.iov_base);
    parts_.insert(parts_.end(), from, from + piece.iov_len);
  }
  in_parts_ = true;
  if (!message.end_of_record) return {.kind = IoResult::Kind::kDone, .bytes = length};
  const iovec whole = {parts_.data(), parts_.size()};
  const IoResult sent = SendWhole(message, {&whole, 1});
  if (sent.kind == IoResult::Kind::kWouldBlock) {  // this part was not taken
    parts_.resize(before);
    return sent;
  }
  parts_.clear();
  in_parts_ = false;
  return sent.kind == IoResult::Kind::kDone ? IoResult{.kind = IoResult::Kind::kDone, .bytes = length} : sent;
}

IoResult KernelAssociation::SendWhole(const OutgoingMessage& message, std::span<const iovec> pieces) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(sctp_sndinfo))] = {};
  msghdr header{};
  header.msg_iov = const_cast<iovec*>(pieces.data());
  header.msg_iovlen = pieces.size();
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  cmsghdr* const one = CMSG_FIRSTHDR(&header);
  one->cmsg_level = IPPROTO_SCTP;
  one->cmsg_type = SCTP_SNDINFO;
  one->cmsg_len = CMSG_LEN(sizeof(sctp_sndinfo));
  sctp_sndinfo info{};
  info.snd_sid = message.stream;
  info.snd_ppid = htonl(message.ppid);
  info.snd_flags = message.unordered ? uint16_t{SCTP_UNORDERED} : uint16_t{0};
  std::memcpy(CMSG_DATA(one), &info, sizeof info);
  ssize_t sent;
  do {
    sent = uncancelled::SendMessage(fd_, &header, MSG_DONTWAIT | MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  if (sent >= 0) return {.kind = IoResult::Kind::kDone, .bytes = static_cast<size_t>(sent)};
  if (errno != EWOULDBLOCK) return {.kind = IoResult::Kind::kFailed, .error = errno};
  readiness_->AwaitRoom();
  return {.kind = IoResult::Kind::kWouldBlock};
}

Received KernelAssociation::Receive(std::span<const iovec> into) {
  if (end_) return *end_;
  if (!Usable()) return End(Received::Kind::kFailed, ECHILD);
  while (true) {
    sctp_rcvinfo info{};
    int flags = 0;
    const ssize_t count = ReceivePieces(fd_, into, &info, &flags);
    if (count < 0 && errno == EWOULDBLOCK) return {.kind = Received::Kind::kNothing};
    if (count < 0) return End(Received::Kind::kFailed, errno);
    if (count == 0) return End(Received::Kind::kEnded, 0);
    const auto bytes = static_cast<size_t>(count);
    if ((flags & MSG_NOTIFICATION) != 0) {
      std::array<uint8_t, kLongestNotification> room;
      if (auto event = OnNotification(Gather(into, bytes, room))) return *event;
      continue;
    }
    Received received{.kind = Received::Kind::kMessage, .bytes = bytes};
    received.info = {.stream = info.rcv_sid,
                     .ssn = info.rcv_ssn,
                     .ppid = ntohl(info.rcv_ppid),
                     .unordered = (info.rcv_flags & SCTP_UNORDERED) != 0,
                     .begins = !in_message_,
                     .end_of_record = (flags & MSG_EOR) != 0};
    in_message_ = !received.info.end_of_record;
    return received;
  }
}

std::optional<Received> KernelAssociation::OnNotification(std::span<const uint8_t> bytes) {
  uint16_t type = 0;
  if (!Read(bytes, &type)) return std::nullopt;
  Received result{.kind = Received::Kind::kEvent};
  switch (type) {
    case SCTP_ASSOC_CHANGE: {
      sctp_assoc_change change;
      if (!Read(bytes, &change)) return std::nullopt;
      switch (change.sac_state) {
        case SCTP_COMM_UP:
          return Up(Event::Kind::kUp, change.sac_inbound_streams, change.sac_outbound_streams);
        case SCTP_RESTART:
          return Up(Event::Kind::kRestarted, change.sac_inbound_streams, change.sac_outbound_streams);
        case SCTP_SHUTDOWN_COMP:
          return End(Received::Kind::kEnded, 0);
        default: {
          const int error = TakeError(fd_);
          return End(Received::Kind::kFailed, error != 0 ? error : ECONNRESET);
        }
      }
    }
    case SCTP_PEER_ADDR_CHANGE: {
      sctp_paddr_change change;
      if (!Read(bytes, &change)) return std::nullopt;
      const sockaddr_storage at = change.spc_aaddr;
      const auto address = AddressIn(at);
      if (!address) return std::nullopt;
      result.event.kind = Event::Kind::kPathChanged;
      result.event.path = *address;
      switch (change.spc_state) {
        case SCTP_ADDR_AVAILABLE:
        case SCTP_ADDR_CONFIRMED:
          result.event.path_state = PathState::kActive;
          return result;
        case SCTP_ADDR_UNREACHABLE: {
          const std::lock_guard lock(mutex_);
          const auto known = std::find_if(failures_.begin(), failures_.end(), [&](const auto& one) { return one.first.SameHost(*address); });
          if (known == failures_.end()) {
            failures_.emplace_back(*address, 1);
          } else {
            ++known->second;
          }
          result.event.path_state = PathState::kInactive;
          return result;
        }
        default:
          return std::nullopt;
      }
    }
    case SCTP_SHUTDOWN_EVENT:
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

Received KernelAssociation::Up(Event::Kind kind, uint16_t streams_in, uint16_t streams_out) {
  const bool first = !std::exchange(up_, true);
  streams_out_ = streams_out;
  in_message_ = in_parts_ = false;
  parts_.clear();
  Received result{.kind = Received::Kind::kEvent};
  result.event.kind = kind;
  result.event.streams_in = streams_in;
  result.event.streams_out = streams_out;
  // The peer's indication, if it sent one, is the very next in the queue.
  sctp_adaptation_event indication{};
  iovec piece{.iov_base = &indication, .iov_len = sizeof indication};
  sctp_rcvinfo info{};
  int flags = MSG_PEEK;
  const bool there = ReceivePieces(fd_, {&piece, 1}, &info, &flags) == sizeof indication && (flags & MSG_NOTIFICATION) != 0 &&
                     indication.sai_type == SCTP_ADAPTATION_INDICATION;
  if (there) {
    flags = 0;
    ReceivePieces(fd_, {&piece, 1}, &info, &flags);
    result.event.adaptation = indication.sai_adaptation_ind;
  }
  if (first) readiness_->AwaitRoom();  // what came too early may go now
  return result;
}

Received KernelAssociation::End(Received::Kind kind, int error) {
  end_ = Received{.kind = kind, .error = error};
  readiness_->End();  // a socket that is over is ready for ever
  return *end_;
}

void KernelAssociation::Shutdown() {
  if (std::exchange(shut_down_, true) || !Usable()) return;
  shutdown(fd_, SHUT_WR);
}

// The kernel sends no reason of the program's for sockets of this style.
void KernelAssociation::Abort(const std::string&) {
  if (!Usable()) return;
  if (!end_) End(Received::Kind::kFailed, ECONNABORTED);
  Close(/*abort=*/true);
}

// --- addresses and paths ---

std::vector<SocketAddress> KernelAssociation::LocalAddresses() const { return LocalAddressesOf(fd_); }
std::vector<SocketAddress> KernelAssociation::PeerAddresses() const { return PeerAddressesOf(fd_); }

uint16_t KernelAssociation::PeerUdpPort() const {
  const auto peers = PeerAddresses();
  return peers.empty() ? uint16_t{0} : UdpPortOf(fd_, peers[0]);
}

std::vector<Path> KernelAssociation::Paths() const {
  const auto status = StatusOf(fd_);
  if (!status) return {};
  const sockaddr_storage at = status->sstat_primary.spinfo_address;
  const auto primary = AddressIn(at);
  std::vector<Path> paths;
  for (const SocketAddress& address : PeerAddresses()) {
    Path& path = paths.emplace_back();
    path.address = address;
    path.primary = primary && primary->SameHost(address);
    if (const auto info = InfoOf(fd_, address)) {
      path.state = StateOf(info->spinfo_state);
      path.smoothed_rtt = Milliseconds(info->spinfo_srtt);
      path.rto = Milliseconds(info->spinfo_rto);
      path.congestion_window = info->spinfo_cwnd;
      path.mtu = info->spinfo_mtu;
    }
    const std::lock_guard lock(mutex_);
    for (const auto& [failed, times] : failures_) {
      if (failed.SameHost(address)) path.failures = times;
    }
  }
  return paths;
}

int KernelAssociation::SetPrimary(const SocketAddress& path) { return MakePrimary(fd_, path); }

size_t KernelAssociation::FragmentationPoint() const {
  const auto status = StatusOf(fd_);
  return status ? status->sstat_fragmentation_point : 0;
}

bool KernelAssociation::HasUnacknowledged() const { return UnacknowledgedOf(fd_).value_or(0) != 0; }

// A peer without room answers each question whether it has some by an acknowledgement.
bool KernelAssociation::Advances() {
  const auto acknowledgements = AcknowledgementsOf(fd_);
  if (!acknowledgements || std::exchange(acknowledgements_, *acknowledgements) != *acknowledgements) return true;
  return !HasUnacknowledged();
}

}  // namespace weft::transport::sctp
