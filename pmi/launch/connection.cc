#include "pmi/launch/connection.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

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

Connection::Connection(int fd) : fd_(fd) {
  SetNonBlocking(fd_);
  SetCloseOnExec(fd_);
}

Connection::~Connection() { close(fd_); }

void Connection::Send(const Frame& frame) {
  const std::string bytes = frame.Serialize();
  ++traffic_.sent;
  traffic_.sent_bytes += bytes.size();
  out_.Add(bytes);
}

std::optional<Frame> Connection::Next() {
  auto frame = in_.Next();
  if (frame) ++traffic_.received;
  return frame;
}

bool Connection::Write() { return out_.WriteTo(fd_) == 0; }

bool Connection::Read() {
  char block[65536];
  const long count = ReadSome(fd_, block, sizeof(block));
  if (count == -EAGAIN) return true;
  if (count <= 0) return false;
  traffic_.received_bytes += static_cast<uint64_t>(count);
  in_.Append({block, static_cast<size_t>(count)});
  return true;
}

void Connection::LookForPeer(std::chrono::steady_clock::time_point now) {
  if (peer_.Look(fd_, now)) shutdown(fd_, SHUT_RDWR);
}

void Connection::Drain(int milliseconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  while (wants_to_write()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd entry{fd_, POLLOUT, 0};
    if (left <= 0 || poll(&entry, 1, static_cast<int>(left)) == 0 || !Write()) return;
  }
}

}  // namespace weft::pmi
