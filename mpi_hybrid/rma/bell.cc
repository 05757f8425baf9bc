#include "mpi_hybrid/rma/bell.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <mutex>
#include <string>

namespace weft::mpi::rma {
namespace {

struct Own {
  int read_end = -1;
  BellName name;
};

const Own& TheOwn() {
  static const Own own = [] {
    Own made;
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return made;
    struct stat status;
    if (fstat(ends[0], &status) != 0) return made;
    made.read_end = ends[0];  // both stay open for as long as the process lives
    made.name = {getpid(), ends[1], status.st_ino};
    return made;
  }();
  return own;
}

std::mutex g_mutex;
std::map<uint64_t, int>& Opened() {  // by inode; outlives exit handlers
  static auto* opened = new std::map<uint64_t, int>;
  return *opened;
}

// For reading too, so that there is always a reader and no signal when the other process is gone. -1: none.
int Open(const BellName& bell) {
  const std::string path = "/proc/" + std::to_string(bell.pid) + "/fd/" + std::to_string(bell.fd);
  const int fd = open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  struct stat status;
  if (fd >= 0 && fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode) && status.st_ino == bell.inode) return fd;
  if (fd >= 0) close(fd);
  return -1;
}

}  // namespace

const BellName& OwnBell() { return TheOwn().name; }
int OwnBellDescriptor() { return TheOwn().read_end; }

void Silence() {
  char bytes[64];
  while (read(TheOwn().read_end, bytes, sizeof bytes) == sizeof bytes) {
  }
}

void Ring(const BellName& bell) {
  if (bell.fd < 0) return;
  const char byte = 0;
  if (bell.inode == OwnBell().inode) {
    (void)!write(OwnBell().fd, &byte, 1);
    return;
  }
  std::lock_guard lock(g_mutex);
  auto found = Opened().find(bell.inode);
  if (found == Opened().end()) {
    const int fd = Open(bell);
    if (fd < 0) return;
    found = Opened().emplace(bell.inode, fd).first;
  }
  (void)!write(found->second, &byte, 1);
}

void ForgetBells() {
  std::lock_guard lock(g_mutex);
  for (const auto& [inode, fd] : Opened()) close(fd);
  Opened().clear();
}

}  // namespace weft::mpi::rma
