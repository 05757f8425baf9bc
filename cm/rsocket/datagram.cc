// The life of a datagram rsocket, and its peers: who they are and by which queue pair they are reached.
#include "cm/rsocket/datagram.h"

#include <sys/epoll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cm/rsocket/addresses.h"

namespace weft::rsocket {
namespace {

constexpr int kResolveMilliseconds = 2000;

}  // namespace

Datagram::Datagram(int domain) : WaitingSocket(domain) {
  const Defaults& defaults = Defaults::Process();
  sizes_ = {defaults.send_bytes, defaults.receive_bytes, defaults.send_queue, defaults.receive_queue, defaults.inline_bytes, 0};
}

std::shared_ptr<Datagram> Datagram::Create(int domain) {
  const std::shared_ptr<Datagram> socket(new Datagram(domain));
  if (const int error = socket->Open(); error != 0) {
    errno = error;
    return nullptr;
  }
  return socket;
}

int Datagram::Open() {
  rdma_cm_id* probe = nullptr;
  if (rdma_create_id(nullptr, &probe, nullptr, RDMA_PS_UDP) != 0) return errno;
  rdma_destroy_id(probe);
  udp_ = socket(domain_, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (udp_ < 0) return errno;
  wait_fd_ = epoll_create1(EPOLL_CLOEXEC);
  if (wait_fd_ < 0) return errno;
  epoll_event event{};
  event.events = EPOLLIN;
  return epoll_ctl(wait_fd_, EPOLL_CTL_ADD, udp_, &event) == 0 ? 0 : errno;
}

// May run at the end of a call that has set errno.
Datagram::~Datagram() {
  const int error = errno;
  arrived_.clear();
  peers_.Clear();
  links_.clear();
  if (wait_fd_ >= 0) close(wait_fd_);
  if (udp_ >= 0) close(udp_);
  errno = error;
}

bool Datagram::Close() {
  Lock lock(mutex_);
  closing_ = true;
  waiters_.WakeAll();  // whoever waits keeps the port until it has noticed
  return true;
}

int Datagram::Shutdown(int how) {
  if (how != SHUT_RD && how != SHUT_WR && how != SHUT_RDWR) return EINVAL;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (connected_.empty()) return ENOTCONN;
  if (how != SHUT_WR) read_shut_ = true;
  if (how != SHUT_RD) write_shut_ = true;
  waiters_.WakeAll();
  return 0;
}

int Datagram::CheckAddress(const sockaddr* address, socklen_t length, sockaddr_storage* into) const {
  if (address == nullptr) return EFAULT;
  if (length < sizeof(sa_family_t)) return EINVAL;
  if (address->sa_family != domain_) return EAFNOSUPPORT;
  if (length < LengthOf(domain_)) return EINVAL;
  *into = {};
  std::memcpy(into, address, LengthOf(domain_));
  return 0;
}

int Datagram::Bind(const sockaddr* address, socklen_t length) {
  sockaddr_storage copy;
  if (const int error = CheckAddress(address, length, &copy); error != 0) return error;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (bound_) return EINVAL;
  if (bind(udp_, Raw(copy), LengthOf(domain_)) != 0) return errno;
  bound_ = true;
  return 0;
}

int Datagram::EnsureBound() {
  if (bound_) return 0;
  sockaddr_storage any{};
  any.ss_family = static_cast<sa_family_t>(domain_);
  if (bind(udp_, Raw(any), LengthOf(domain_)) != 0) return errno;
  bound_ = true;
  return 0;
}

int Datagram::Connect(const sockaddr* address, socklen_t length) {
  if (address != nullptr && length >= sizeof(sa_family_t) && address->sa_family == AF_UNSPEC) {
    Lock lock(mutex_);
    if (closing_) return EBADF;
    connected_.clear();
    return connect(udp_, address, length) == 0 ? 0 : errno;
  }
  sockaddr_storage copy;
  if (const int error = CheckAddress(address, length, &copy); error != 0) return error;
  Lock lock(mutex_);
  if (closing_) return EBADF;
  if (IsGroup(copy)) return EOPNOTSUPP;
  // The kernel chooses the address, and says so when nobody listens.
  if (connect(udp_, Raw(copy), LengthOf(domain_)) != 0) return errno;
  bound_ = true;
  sockaddr_storage chosen{};
  socklen_t chosen_length = sizeof chosen;
  if (getpeername(udp_, Raw(chosen), &chosen_length) == 0) copy = chosen;  // of the wildcard: the own host
  if (FindPeer(copy) == nullptr) return errno;
  connected_ = KeyOf(copy);
  // What came from others before is theirs no more.
  std::erase_if(arrived_, [this](Arrived& each) {
    if (IsWanted(each.from)) return false;
    copied_ -= each.Cost();
    if (each.link != nullptr) each.link->Release(each.slot);
    return true;
  });
  return 0;
}

int Datagram::Name(bool peer, sockaddr_storage* name) {
  Lock lock(mutex_);
  if (closing_) return EBADF;
  *name = {};
  socklen_t length = sizeof *name;
  const int failed = peer ? getpeername(udp_, Raw(*name), &length) : getsockname(udp_, Raw(*name), &length);
  return failed != 0 ? errno : 0;
}

sockaddr_storage Datagram::InDomain(const sockaddr_storage& address) const {
  return domain_ == AF_INET6 ? Mapped(address) : address;
}

bool Datagram::IsWanted(const sockaddr_storage& from) const { return connected_.empty() || KeyOf(from) == connected_; }

// --- peers ---

std::shared_ptr<DatagramPeer> Datagram::FindPeer(const sockaddr_storage& address) {
  const std::string key = KeyOf(address);
  if (auto known = peers_.Find(key); known != nullptr) return known;
  auto peer = std::make_shared<Peer>();
  peer->address = Unmapped(address);
  if (const int error = Resolve(*peer); error != 0) {
    errno = error;
    return nullptr;
  }
  peers_.Add(key, peer, connected_);
  return peer;
}

// Which device and address lead to it: no packet is sent for that.
int Datagram::Resolve(Peer& peer) {
  if (const int error = EnsureBound(); error != 0) return error;
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  if (getsockname(udp_, Raw(own), &length) != 0) return errno;
  own = Unmapped(own);
  const uint16_t port = PortOf(own);
  SetPort(own, 0);
  rdma_cm_id* id = nullptr;
  if (rdma_create_id(nullptr, &id, nullptr, RDMA_PS_UDP) != 0) return errno;
  const bool from_there = !IsWildcard(own) && own.ss_family == peer.address.ss_family;
  int error = rdma_resolve_addr(id, from_there ? Raw(own) : nullptr, Raw(peer.address), kResolveMilliseconds) == 0 ? 0 : errno;
  if (error == 0) {
    peer.link = LinkOn(id->verbs);
    peer.handle = peer.link != nullptr ? peer.link->MakeAddress(id) : nullptr;
    if (peer.handle == nullptr) error = errno;
    const sockaddr* local = rdma_get_local_addr(id);
    std::memcpy(&peer.own, local, LengthOf(local->sa_family));
    SetPort(peer.own, port);
  }
  rdma_destroy_id(id);
  return error;
}

// nullptr and errno.
DatagramLink* Datagram::LinkOn(ibv_context* device) {
  for (const auto& link : links_) {
    if (link->verbs() == device) return link.get();
  }
  auto link = DatagramLink::Create(device, sizes_);
  if (link == nullptr) return nullptr;
  epoll_event event{};
  event.events = EPOLLIN;
  if (epoll_ctl(wait_fd_, EPOLL_CTL_ADD, link->channel()->fd, &event) != 0) return nullptr;
  waiters_.WakeAll();  // they arm it
  links_.push_back(std::move(link));
  return links_.back().get();
}

}  // namespace weft::rsocket
