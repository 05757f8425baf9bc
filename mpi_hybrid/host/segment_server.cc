#include "mpi_hybrid/host/segment_server.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "base/file_limit.h"
#include "base/high_descriptor.h"
#include "base/log.h"
#include "base/passed_descriptor.h"
#include "mpi_hybrid/host/abstract_name.h"
#include "mpi_hybrid/host/credentials.h"
#include "mpi_hybrid/host/handshake.h"

namespace weft::mpi::host {
namespace {

constexpr size_t kMostStrangers = 64;  // of this user, beside the guests; the oldest gives way

}  // namespace

bool SegmentServer::Listen(size_t guests) {
  most_guests_ = guests + kMostStrangers;
  name_ = NewNonce();
  const AbstractName name(kSegmentPrefix, name_);
  listener_ = Descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  return listener_ && bind(listener_.get(), name.get(), name.length) == 0 &&
         listen(listener_.get(), static_cast<int>(most_guests_)) == 0;
}

bool SegmentServer::Start(const JobSecret& secret, std::vector<int> ranks, int memory) {
  secret_ = secret;
  ranks_ = std::move(ranks);
  memory_ = memory;
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!stop_) return false;
  // The program's signals go to the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  const int error = pthread_create(&thread_, &attributes, &SegmentServer::Run, this);
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  runs_ = error == 0;
  errno = error;
  return runs_;
}

void SegmentServer::Stop() {
  if (!std::exchange(runs_, false)) return;
  eventfd_write(stop_.get(), 1);
  pthread_join(thread_, nullptr);
  guests_.clear();
  listener_.Close();
}

void* SegmentServer::Run(void* host) {
  static_cast<SegmentServer*>(host)->Serve();
  return nullptr;
}

void SegmentServer::Serve() {
  std::vector<pollfd> fds;
  for (;;) {
    fds.assign({{stop_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}});
    for (const Guest& guest : guests_) fds.push_back({guest.socket.get(), POLLIN, 0});
    if (poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (fds[0].revents != 0) return;
    // From behind, so that the places of those in front stay theirs.
    for (size_t i = guests_.size(); i-- != 0;) {
      if (fds[i + 2].revents == 0) continue;
      Answer(guests_[i]);
      guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    if (fds[1].revents != 0) Admit();
  }
}

void SegmentServer::Admit() {
  Guest guest{Descriptor(AcceptOnListener(listener_.get())), NewNonce()};
  if (!guest.socket || !IsOfThisUser(guest.socket.get())) {
    // Out of descriptors the kernel keeps the guest, and its poll would spin: whoever waits longest gives way.
    if (!guest.socket && IsShortage(errno)) {
      if (guests_.empty()) {
        const timespec a_moment = {.tv_sec = 0, .tv_nsec = 10'000'000};
        nanosleep(&a_moment, nullptr);
      } else {
        guests_.erase(guests_.begin());
      }
    }
    return;
  }
  if (send(guest.socket.get(), guest.challenge.data(), guest.challenge.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return;
  if (guests_.size() >= most_guests_) guests_.erase(guests_.begin());
  guests_.push_back(std::move(guest));
}

void SegmentServer::Answer(const Guest& guest) const {
  uint8_t bytes[GuestHello::kLength + 1];
  const ssize_t got = recv(guest.socket.get(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got != static_cast<ssize_t>(GuestHello::kLength)) return;
  const std::span<const uint8_t, GuestHello::kLength> said(bytes, GuestHello::kLength);
  const auto hello = GuestHello::Read(*secret_, guest.challenge, said);
  pid_t pid = 0;
  if (!hello || !IsOfThisUser(guest.socket.get(), &pid)) return;
  if (!std::binary_search(ranks_.begin(), ranks_.end(), hello->rank)) return;
  if (pid != hello->pid || hello->pid_namespace != PidNamespace()) {
    if (TraceEnabled()) Trace(Format("mpi: rank %d is of another pid namespace; no shared memory", hello->rank));
    return;
  }
  // A guest that takes nothing finds its connection ended.
  (void)SendWithDescriptor(guest.socket.get(), HostProof(*secret_, guest.challenge, said), memory_);
}

}  // namespace weft::mpi::host
