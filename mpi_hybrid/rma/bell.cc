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
std::map<uint64_t, std::weak_ptr<Bell>>& Bells() {  // by inode, with the mutex; outlives exit handlers
  static auto* bells = new std::map<uint64_t, std::weak_ptr<Bell>>;
  return *bells;
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

std::shared_ptr<Bell> Bell::Of(const BellName& name) {
  std::lock_guard lock(g_mutex);
  std::weak_ptr<Bell>& known = Bells()[name.inode];
  std::shared_ptr<Bell> bell = known.lock();
  if (bell == nullptr) known = bell = std::shared_ptr<Bell>(new Bell(name));
  return bell;
}

Bell::~Bell() {
  if (fd_ >= 0) close(fd_);
  std::lock_guard lock(g_mutex);
  const auto found = Bells().find(name_.inode);
  if (found != Bells().end() && found->second.expired()) Bells().erase(found);  // else somebody made another meanwhile
}

void Bell::Ring() {
  if (name_.fd < 0) return;
  const char byte = 0;
  if (name_.inode == OwnBell().inode) {
    (void)!write(OwnBell().fd, &byte, 1);
    return;
  }
  std::lock_guard lock(mutex_);
  if (fd_ < 0) fd_ = Open(name_);
  if (fd_ >= 0) (void)!write(fd_, &byte, 1);
}

}  // namespace weft::mpi::rma
