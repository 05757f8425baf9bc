#include "pmi/launch/outbox.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace weft::pmi {

int Outbox::WriteTo(int fd, size_t most) {
  while (!empty() && most != 0) {
    const ssize_t count = write(fd, bytes_.data() + done_, std::min(size(), most));
    if (count < 0) return errno == EAGAIN || errno == EINTR ? 0 : errno;
    done_ += static_cast<size_t>(count);
    most -= static_cast<size_t>(count);
  }
  // The front goes when it is worth a move of the rest.
  if (done_ == bytes_.size() || done_ >= 1 << 20) {
    bytes_.erase(0, done_);
    done_ = 0;
  }
  return 0;
}

long ReadSome(int fd, char* into, size_t most) {
  for (;;) {
    const ssize_t count = read(fd, into, most);
    if (count >= 0) return count;
    if (errno != EINTR) return -errno;
  }
}

void SetNonBlocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }
void SetCloseOnExec(int fd) { fcntl(fd, F_SETFD, FD_CLOEXEC); }

}  // namespace weft::pmi
