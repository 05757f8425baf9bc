#include "wires/host/meeting/meeting_point.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/passed_descriptor.h"
#include "base/uncancelled.h"

namespace weft::host {
namespace {

// Of what lies in the memory. Processes of different ones do not find each other, and stay on TCP.
constexpr int kRevision = 6;
constexpr int kBacklog = 1024;
constexpr int kMostVisitorsAtOnce = 256;
constexpr uid_t kOverflowUser = 65534;  // whom the kernel names for users that a name space does not have

socklen_t AddressOf(uint64_t point, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;  // and an empty path: the name is abstract, and no file
  const int length = std::snprintf(address->sun_path + 1, sizeof address->sun_path - 1, "weft-host-%d-%016llx", kRevision, static_cast<unsigned long long>(point));
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + static_cast<size_t>(length));
}

// The other end of a connected socket runs for our user.
bool IsOurUser(int fd, pid_t* pid) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return false;
  *pid = peer.pid;
  return peer.uid == geteuid() && peer.uid != kOverflowUser;
}

Descriptor OpenSocket() {
  Descriptor socket(LeaveRoomForSelect(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  if (socket && !IsToSpare(socket.get())) socket.Close();
  return socket;
}

bool Greet(int bell, const Invitation& invitation, int memory) {
  return SendWithDescriptor(bell, invitation.nonce, memory) == static_cast<ssize_t>(invitation.nonce.size());
}

// The nonce and one descriptor; EAGAIN: nothing came yet. Whatever else came is closed.
int HearGreeting(int bell, Nonce* nonce, Descriptor* memory) {
  ReceivedWithDescriptor received = ReceiveWithDescriptor(bell, *nonce, MSG_DONTWAIT);
  if (received.bytes < 0) return errno;
  *memory = std::move(received.fd);
  return received.bytes == static_cast<ssize_t>(nonce->size()) && received.descriptors == 1 && !received.truncated ? 0 : EPROTO;
}

}  // namespace

bool MeetingPoint::Open() {
  if (socket_) return true;
  Descriptor socket = OpenSocket();
  if (!socket || getrandom(&point_, sizeof point_, GRND_NONBLOCK) != sizeof point_) return false;
  sockaddr_un address;
  const socklen_t length = AddressOf(point_, &address);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(socket.get(), kBacklog) != 0) return false;
  socket_ = std::move(socket);
  return true;
}

std::optional<Invitation> MeetingPoint::Invite() {
  Invitation invitation;
  if (getrandom(invitation.nonce.data(), invitation.nonce.size(), GRND_NONBLOCK) != static_cast<ssize_t>(invitation.nonce.size())) return std::nullopt;
  std::lock_guard lock(mutex_);
  if (!Open()) return std::nullopt;
  TakeVisitors();  // so that strangers do not stand in front of whom we invite now
  invitation.point = point_;
  invited_.emplace(invitation.nonce, nullptr);
  return invitation;
}

std::unique_ptr<Met> MeetingPoint::Collect(const Invitation& invitation) {
  std::lock_guard lock(mutex_);
  TakeVisitors();
  const auto found = invited_.find(invitation.nonce);
  if (found == invited_.end()) return nullptr;
  std::unique_ptr<Met> met = std::move(found->second);
  invited_.erase(found);
  return met;
}

void MeetingPoint::Withdraw(const Invitation& invitation) {
  std::unique_ptr<Met> met;  // let go of without the lock
  std::lock_guard lock(mutex_);
  const auto found = invited_.find(invitation.nonce);
  if (found == invited_.end()) return;
  met = std::move(found->second);
  invited_.erase(found);
}

void MeetingPoint::TakeVisitors() {
  std::erase_if(silent_, [this](Descriptor& visitor) { return Hear(visitor); });
  for (int i = 0; i < kMostVisitorsAtOnce; ++i) {
    Descriptor visitor(AcceptOnListener(socket_.get()));
    if (!visitor) return;
    pid_t pid;
    if (!IsOurUser(visitor.get(), &pid) || !IsToSpare(visitor.get()) || Hear(visitor)) continue;
    if (silent_.size() == kMostSilent) silent_.erase(silent_.begin());
    silent_.push_back(std::move(visitor));
  }
}

bool MeetingPoint::Hear(Descriptor& visitor) {
  Nonce nonce;
  Descriptor fd;
  const int error = HearGreeting(visitor.get(), &nonce, &fd);
  if (error == EAGAIN) return false;
  const auto found = invited_.find(nonce);
  if (error != 0 || found == invited_.end() || found->second != nullptr) return true;
  auto met = std::make_unique<Met>();
  met->memory = SharedMemory::Adopt(fd.get());
  if (met->memory == nullptr || !IsOurUser(visitor.get(), &met->peer)) return true;
  met->bell = std::move(visitor);
  found->second = std::move(met);
  return true;
}

std::unique_ptr<Met> MeetingPoint::Visit(const Invitation& invitation) {
  auto met = std::make_unique<Met>();
  met->bell = OpenSocket();
  if (!met->bell) return nullptr;
  sockaddr_un address;
  const socklen_t length = AddressOf(invitation.point, &address);
  if (connect(met->bell.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) return nullptr;
  if (!IsOurUser(met->bell.get(), &met->peer)) return nullptr;
  int fd = -1;
  met->memory = SharedMemory::Create(&fd);
  const Descriptor memory(fd);
  if (met->memory == nullptr || !Greet(met->bell.get(), invitation, memory.get())) return nullptr;
  return met;
}

}  // namespace weft::host
