// Sending, receiving and waiting on a datagram rsocket.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/rsocket/addresses.h"
#include "cm/rsocket/datagram.h"
#include "cm/rsocket/vector_cursor.h"

namespace weft::rsocket {
namespace {

// Of one datagram: as much as UDP has room for (udp(7)), less the longest header.
constexpr size_t kMostBytes = 65507 - LookupHeader::kMostLength;
// A peer of which nothing was heard for so long is asked again.
constexpr std::chrono::seconds kTrustFor{1};
// UDP datagrams that one call takes: all that a socket holds, so that short ones do not overtake long ones.
constexpr int kMostAtOnce = 4096;

}  // namespace

// --- sending ---

bool Datagram::GoesByRdma(const Peer& peer, size_t length) const {
  return peer.queue_pair != 0 && length + DatagramHeader::kMostLength <= peer.link->most_bytes() &&
         (!peer.unheard_since || Clock::now() - *peer.unheard_since < kTrustFor);
}

ssize_t Datagram::Send(const iovec* pieces, int count, int flags, const sockaddr* to, socklen_t to_length) {
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  VectorCursor from(pieces, count);
  const size_t length = from.left();
  if (length > kMostBytes) return -EMSGSIZE;
  Lock lock(mutex_);
  if (closing_) return -EBADF;
  if (write_shut_) return -EPIPE;
  if (error_ != 0) return -std::exchange(error_, 0);
  std::shared_ptr<Peer> peer;  // others may have it forgotten while this waits
  if (to != nullptr && to_length != 0) {
    sockaddr_storage address;
    if (const int error = CheckAddress(to, to_length, &address); error != 0) return -error;
    if (IsGroup(address)) return -EOPNOTSUPP;
    peer = FindPeer(address);
  } else if (connected_.empty()) {
    return -EDESTADDRREQ;
  } else {
    peer = peers_.Find(connected_);
    sockaddr_storage address{};
    socklen_t address_length = sizeof address;
    if (peer == nullptr) {
      if (getpeername(udp_, Raw(address), &address_length) != 0) return -errno;
      peer = FindPeer(address);
    }
  }
  if (peer == nullptr) return -errno;

  const Deadline deadline = DeadlineOf(flags, send_timeout_);
  if (!GoesByRdma(*peer, length)) Drive();  // its answer may be here
  if (!GoesByRdma(*peer, length)) return SendByUdp(lock, *peer, LookupHeader::Op::kData, pieces, count, deadline);
  if (!peer->link->can_send()) {
    DriveLinks();
    if (!peer->link->can_send()) {
      if (const int error = Await(lock, deadline, &Datagram::Writable); error != 0) return -error;
      if (closing_) return -EBADF;
      if (!peer->link->can_send()) return -EAGAIN;
    }
  }
  std::array<uint8_t, DatagramHeader::kMostLength> header;
  const size_t header_length = DatagramHeader{peer->own}.Serialize(header);
  const int error = peer->link->Send(peer->handle, peer->queue_pair, Bytes(header).first(header_length), from, length);
  if (error == 0 && !peer->unheard_since) peer->unheard_since = Clock::now();
  return error == 0 ? static_cast<ssize_t>(length) : -error;
}

ssize_t Datagram::SendByUdp(Lock& lock, Peer& peer, LookupHeader::Op op, const iovec* pieces, int count,
                            const Deadline& deadline) {
  std::array<uint8_t, LookupHeader::kMostLength> header;
  const size_t header_length = LookupHeader{op, peer.link->number(), peer.address}.Serialize(header);
  std::vector<iovec> whole{{header.data(), header_length}};
  whole.insert(whole.end(), pieces, pieces + count);
  sockaddr_storage to = InDomain(peer.address);
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = LengthOf(to.ss_family);
  message.msg_iov = whole.data();
  message.msg_iovlen = whole.size();
  for (;;) {
    const ssize_t sent = sendmsg(udp_, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent >= 0) return sent - static_cast<ssize_t>(header_length);
    if (errno != EAGAIN) return -errno;
    if (Passed(deadline)) return -EAGAIN;
    pollfd ready{udp_, POLLOUT, 0};
    lock.unlock();
    const int polled = poll(&ready, 1, PollTimeout(deadline));
    const int error = polled < 0 ? errno : 0;
    lock.lock();
    if (error != 0) return -error;
    if (closing_) return -EBADF;
  }
}

// --- receiving ---

ssize_t Datagram::Receive(const iovec* pieces, int count, int flags, sockaddr_storage* from, int* out_flags) {
  if ((flags & MSG_OOB) != 0) return -EOPNOTSUPP;
  *out_flags = 0;
  Lock lock(mutex_);
  if (closing_) return -EBADF;
  if (arrived_.empty()) {
    if (const int error = Await(lock, DeadlineOf(flags, receive_timeout_), &Datagram::Readable); error != 0) return -error;
    if (closing_) return -EBADF;
    if (arrived_.empty()) return error_ != 0 ? -std::exchange(error_, 0) : 0;  // rshutdown
  }
  Arrived& arrived = arrived_.front();
  VectorCursor into(pieces, count);
  const size_t part = std::min<uint64_t>(into.left(), arrived.bytes.size());
  if (part > 0) into.CopyIn(arrived.bytes.data(), part);
  if (from != nullptr) *from = InDomain(arrived.from);
  if (part < arrived.bytes.size()) *out_flags |= MSG_TRUNC;
  const size_t whole = arrived.bytes.size();
  if ((flags & MSG_PEEK) == 0) {
    if (arrived.link != nullptr) arrived.link->Release(arrived.slot);
    copied_ -= arrived.Cost();
    arrived_.pop_front();
  }
  return static_cast<ssize_t>((flags & MSG_TRUNC) != 0 ? whole : part);
}

void Datagram::Drive() {
  DriveUdp();  // first: what a peer sends before it knows our queue pair
  DriveLinks();
}

void Datagram::DriveLinks() {
  for (const auto& link : links_) {
    DatagramLink::Incoming incoming;
    while (link->Take(&incoming)) {
      size_t header_length = 0;
      const auto header = DatagramHeader::Parse(incoming.bytes, &header_length);
      if (!header || read_shut_ || !IsWanted(header->from)) {
        link->Release(incoming.slot);
        continue;
      }
      const auto known = peers_.Find(KeyOf(header->from));
      if (known != nullptr && known->queue_pair == incoming.sender) known->unheard_since.reset();
      Deliver({link.get(), incoming.slot, {}, incoming.bytes.subspan(header_length), header->from});
    }
  }
}

void Datagram::DriveUdp() {
  if (staging_.empty()) staging_.resize(1 << 16);
  for (int i = 0; i < kMostAtOnce; ++i) {
    sockaddr_storage from{};
    socklen_t length = sizeof from;
    const ssize_t count = recvfrom(udp_, staging_.data(), staging_.size(), MSG_DONTWAIT, Raw(from), &length);
    if (count < 0) {
      if (errno != EAGAIN && errno != EINTR) error_ = errno;  // ECONNREFUSED: nobody has the port there
      return;
    }
    OnUdp(Bytes(staging_).first(static_cast<size_t>(count)), from);
  }
}

void Datagram::OnUdp(Bytes datagram, const sockaddr_storage& from) {
  size_t header_length = 0;
  const auto header = LookupHeader::Parse(datagram, &header_length);
  if (!header) return;
  if (const auto peer = FindPeer(from); peer != nullptr) {
    peer->queue_pair = header->queue_pair;
    peer->unheard_since.reset();
    if (header->op == LookupHeader::Op::kData) {
      Lock none;
      SendByUdp(none, *peer, LookupHeader::Op::kControl, nullptr, 0, Clock::time_point::min());
    }
  }
  if (header->op != LookupHeader::Op::kData || read_shut_ || !IsWanted(from)) return;
  const Bytes bytes = datagram.subspan(header_length);
  // Lost, as where a receive buffer is full.
  if (copied_ + bytes.size() + sizeof(Arrived) > std::max<size_t>(sizes_.receive_bytes, kMostBytes + sizeof(Arrived))) return;
  Arrived arrived;
  arrived.copy.assign(bytes.begin(), bytes.end());
  arrived.bytes = arrived.copy;
  arrived.from = from;
  copied_ += arrived.Cost();
  Deliver(std::move(arrived));
}

void Datagram::Deliver(Arrived arrived) {
  arrived_.push_back(std::move(arrived));
  waiters_.WakeAll(&Waiter::Mine());
}

// --- waiting ---

void Datagram::Arm() {
  for (const auto& link : links_) link->Arm();
}

void Datagram::TakeEvents() {
  bool any = false;
  for (const auto& link : links_) any |= link->TakeEvents();
  if (any) waiters_.WakeAll(&Waiter::Mine());  // they arm it again
}

bool Datagram::Writable() const {
  if (closing_ || error_ != 0) return true;
  for (const auto& link : links_) {
    if (!link->can_send()) return false;
  }
  return true;
}

short Datagram::Events(short wanted) const {
  int events = 0;
  if (Readable()) events |= POLLIN | POLLRDNORM;
  if (Writable()) events |= POLLOUT | POLLWRNORM;
  if (error_ != 0) events |= POLLERR;
  if (read_shut_) events |= POLLRDHUP;
  if (read_shut_ && write_shut_) events |= POLLHUP;
  return static_cast<short>(events & (wanted | POLLERR | POLLHUP));
}

}  // namespace weft::rsocket
