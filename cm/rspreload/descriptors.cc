#include "cm/rspreload/descriptors.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>

#include "cm/rspreload/calls.h"

namespace weft::rspreload {
namespace {

// Both by descriptor. 0 is kNone, so that nothing has to be filled in.
std::atomic<int> rsockets[kMost];  // what it stands for, plus 1; or kDead
std::atomic<int> sharers[kMost];   // of an rsocket: how many stand for it

std::atomic<pid_t> owner{0};  // 0: there was no rsocket yet

void ForgetInChild() {
  owner.store(getpid());
  for (auto& one : rsockets) {
    if (one.load(std::memory_order_relaxed) > 0) one.store(kDead, std::memory_order_relaxed);
  }
}

}  // namespace

int Lookup(int fd) {
  if (fd < 0 || fd >= kMost) return kNone;
  const int known = rsockets[fd].load(std::memory_order_acquire);
  return known == kDead ? kDead : known - 1;
}

bool IsOwner() {
  const pid_t known = owner.load(std::memory_order_relaxed);
  return known == 0 || known == getpid();
}

int Attach(int rsocket, bool close_on_exec) {
  [[maybe_unused]] static const int registered = pthread_atfork(nullptr, nullptr, ForgetInChild);
  if (owner.load(std::memory_order_relaxed) == 0) owner.store(getpid());
  WEFT_NEXT(fcntl);
  const int fd = next(rsocket, close_on_exec ? F_DUPFD_CLOEXEC : F_DUPFD, 0);
  if (fd < 0) return -1;
  if (fd >= kMost || rsocket >= kMost) {
    Next<int (*)(int)>("close")(fd);
    return -1;
  }
  Share(fd, rsocket);
  return fd;
}

void Share(int fd, int rsocket) {
  if (fd < 0 || fd >= kMost) return;
  sharers[rsocket].fetch_add(1);
  rsockets[fd].store(rsocket + 1, std::memory_order_release);
}

bool Detach(int fd) {
  if (fd < 0 || fd >= kMost) return false;
  const int known = rsockets[fd].exchange(0);
  return known > 0 && sharers[known - 1].fetch_sub(1) == 1;
}

}  // namespace weft::rspreload
