#include "mpi_hybrid/p2p/shm/peer_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace weft::mpi::shm {

bool PeerProcess::Open(EventLoop& loop, const NodeSegment& node, int place) {
  node_ = &node;
  place_ = place;
  pid_ = node.PidOf(place);
  if (pid_ == 0) return false;
  pidfd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
  if (node.PidOf(place) != pid_) return false;  // that may be of another one
  if (pidfd_) registration_ = {loop, pidfd_.fd(), EPOLLIN, *this};
  return true;
}

bool PeerProcess::Look() {
  if (dead_) return true;
  if (pidfd_) {
    pollfd ends = {pidfd_.fd(), POLLIN, 0};
    dead_ = poll(&ends, 1, 0) == 1;
  } else {
    dead_ = node_->PidOf(place_) != pid_;
  }
  return dead_;
}

void PeerProcess::OnReady(uint32_t) {
  dead_ = true;
  registration_.End();
}

bool PeerProcess::TryToRead(uint64_t address, std::span<const uint8_t> cookie) const {
  uint8_t found[64];
  iovec here = {found, std::min(cookie.size(), sizeof(found))};
  iovec there = {reinterpret_cast<void*>(address), here.iov_len};
  return process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(cookie.size()) &&
         std::equal(cookie.begin(), cookie.end(), found);
}

ssize_t PeerProcess::Read(std::span<const iovec> to, uint64_t from, size_t bytes) {
  const iovec there = {reinterpret_cast<void*>(from), bytes};
  const ssize_t got = process_vm_readv(pid_, to.data(), to.size(), &there, 1, 0);
  return Look() ? -1 : std::max<ssize_t>(got, 0);
}

}  // namespace weft::mpi::shm
