#include "impi/run/entrance.h"

#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/file_limit.h"
#include "base/hex.h"
#include "base/high_descriptor.h"
#include "impi/run/local_address.h"
#include "pmi/launch/outbox.h"

namespace weft::impi {
namespace {

constexpr int kBacklog = 4096;                   // processes that wait to be accepted; the kernel's limit is often the same
constexpr std::chrono::milliseconds kPause{20};  // until the kernel is asked again that had no descriptor

}  // namespace

Result<AgentListener, std::string> AgentListener::Open() {
  std::array<uint8_t, 8> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) return "no random numbers: " + std::string(std::strerror(errno));
  AgentListener listener{Descriptor(LeaveRoomForSelect(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0))),
                         "@weft-impi-" + std::to_string(getpid()) + "-" + HexOf(random)};
  const auto address = LocalAddress::Parse(listener.address);
  WEFT_CHECK(address);
  const int fd = listener.fd.get();
  if (fd >= 0 && bind(fd, address->get(), address->length()) == 0 && listen(fd, kBacklog) == 0) return listener;
  return "cannot listen for the processes of this host at " + listener.address + ": " + DescribeShortage(errno);
}

Entrance::Entrance(std::vector<int32_t> ranks, AgentListener listener, pmi::EventPoller& poller, Hooks hooks)
    : reception_(std::move(ranks), geteuid()), listener_(std::move(listener)), poller_(poller), hooks_(std::move(hooks)) {}

void Entrance::Open() { WatchListener(); }

void Entrance::Close() {
  for (auto& [connection, fd] : strangers_) poller_.Forget(fd.get());
  strangers_.clear();
  poller_.Forget(listener_.fd.get());
  listener_.fd.Close();
}

std::optional<Entrance::Time> Entrance::deadline() const {
  const auto first = reception_.deadline();
  if (!first || !pauses_until_) return first ? first : pauses_until_;
  return std::min(*first, *pauses_until_);
}

void Entrance::OnTime(Time now) {
  reception_.OnTime(now);
  if (pauses_until_ && *pauses_until_ <= now) pauses_until_.reset();
  Attend();
}

void Entrance::WatchListener() {
  const bool wanted = listener_.fd && reception_.has_room() && !pauses_until_;
  if (wanted == listening_) return;
  listening_ = wanted;
  if (!wanted) return poller_.Forget(listener_.fd.get());
  if (!poller_.Watch(listener_.fd.get(), EPOLLIN, [this](uint32_t) { Accept(); })) hooks_.no_room();
}

void Entrance::Accept() {
  const Time now = Reception::Time::clock::now();
  Descriptor fd(AcceptOnListener(listener_.fd.get()));
  if (!fd) {
    if (!IsShortage(errno)) return;
    hooks_.warn("a process of this host has to wait until it can be accepted: " + DescribeShortage(errno));
    pauses_until_ = now + kPause;
    return WatchListener();
  }
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return;
  const Reception::Connection connection = next_++;
  const int number = fd.get();
  strangers_.emplace(connection, std::move(fd));
  reception_.OnAccepted(connection, peer.uid, now);
  if (!poller_.Watch(number, EPOLLIN, [this, connection, number](uint32_t) { ReadHello(connection, number); })) hooks_.no_room();
  Attend();
}

void Entrance::ReadHello(Reception::Connection connection, int fd) {
  char words[64];
  const size_t wanted = std::min(reception_.Wants(connection), sizeof words);
  if (wanted == 0) return;
  const long count = pmi::ReadSome(fd, words, wanted);
  if (count == -EAGAIN) return;
  if (count <= 0) {
    reception_.OnClosed(connection);
  } else {
    reception_.OnBytes(connection, {reinterpret_cast<const uint8_t*>(words), static_cast<size_t>(count)});
  }
  Attend();
}

void Entrance::Attend() {
  const auto take = [this](Reception::Connection connection) {
    const auto found = strangers_.find(connection);
    Descriptor fd = std::move(found->second);
    strangers_.erase(found);
    poller_.Forget(fd.get());
    return fd;
  };
  for (const Reception::Refusal& refusal : reception_.TakeRefused()) {
    const Descriptor fd = take(refusal.connection);
    (void)!send(fd.get(), refusal.last_words.data(), refusal.last_words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    hooks_.warn(refusal.why);
  }
  for (const Reception::Guest& guest : reception_.TakeWelcomed()) hooks_.let_in(guest, take(guest.connection));
  WatchListener();
}

}  // namespace weft::impi
