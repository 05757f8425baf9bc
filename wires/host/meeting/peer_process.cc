#include "wires/host/meeting/peer_process.h"

#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/dma_scope.h"

namespace weft::host {
namespace {

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

int OpenProcess(pid_t pid) { return pid > 0 ? static_cast<int>(syscall(SYS_pidfd_open, pid, 0)) : -1; }

}  // namespace

PeerProcess::PeerProcess(pid_t pid, const Probe& probe) : pid_(pid), probe_(probe), process_(OpenProcess(pid)) {}

bool PeerProcess::IsGone() const {
  if (pid_ <= 0) return false;
  if (kill(pid_, 0) != 0 && errno == ESRCH) return true;
  if (process_) {
    pollfd look{.fd = process_.get(), .events = POLLIN, .revents = 0};
    if (poll(&look, 1, 0) == 1) return true;
  }
  // The number may be another process's, or the process's memory another program's.
  uint64_t value = 0;
  const iovec ours{&value, sizeof value};
  const iovec theirs{reinterpret_cast<void*>(probe_.address.load(std::memory_order_relaxed)), sizeof value};
  const DmaScope dma;
  const ssize_t got = process_vm_readv(pid_, &ours, 1, &theirs, 1, 0);
  if (got < 0) return errno == EFAULT;  // else it may not be asked
  return value != probe_.value.load(std::memory_order_relaxed);
}

}  // namespace weft::host
