#include "pmi/launch/connection.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

namespace weft::pmi {

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
