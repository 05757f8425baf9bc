#include "mpi_hybrid/p2p/host/peer_process.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace weft::mpi::host {

bool PeerProcess::Open(EventLoop& loop, const Segment& segment, int place) {
  segment_ = &segment;
  place_ = place;
  const pid_t pid = segment.PidOf(place);
  if (pid == 0) return false;
  reader_ = ProcessReader(pid);
  pidfd_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (segment.PidOf(place) != pid) return false;  // that may be of another one
  if (pidfd_) registration_ = {loop, pidfd_.fd(), EPOLLIN, *this};
  return true;
}

bool PeerProcess::Look() {
  if (dead_) return true;
  if (pidfd_) {
    pollfd ends = {pidfd_.fd(), POLLIN, 0};
    dead_ = poll(&ends, 1, 0) == 1;
  } else {
    dead_ = segment_->PidOf(place_) != reader_.pid();
  }
  return dead_;
}

void PeerProcess::OnReady(uint32_t) {
  dead_ = true;
  registration_.End();
}

ssize_t PeerProcess::Read(std::span<const iovec> to, uint64_t from, size_t bytes) {
  const size_t got = reader_.Read(to, from, bytes);
  return got == 0 && Look() ? -1 : static_cast<ssize_t>(got);
}

}  // namespace weft::mpi::host
