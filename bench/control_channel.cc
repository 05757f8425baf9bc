#include "bench/control_channel.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

namespace weft::bench {
namespace {

constexpr size_t kLongest = 65536;

}  // namespace

ControlChannel::~ControlChannel() { close(fd_); }

void ControlChannel::Send(const Message& message) {
  const std::string text = message.ToString();
  if (send(fd_, text.data(), text.size(), MSG_NOSIGNAL) < 0) Fail("control channel", errno);
}

std::optional<Message> ControlChannel::Receive(int timeout_ms) {
  pollfd waiting = {.fd = fd_, .events = POLLIN, .revents = 0};
  const int ready = poll(&waiting, 1, timeout_ms);
  if (ready < 0) Fail("poll", errno);
  if (ready == 0) throw Failure("no answer in " + std::to_string(timeout_ms / 1000) + " s");
  std::vector<char> text(kLongest);
  const ssize_t length = recv(fd_, text.data(), text.size(), 0);
  if (length <= 0) return std::nullopt;
  return Message::Parse({text.data(), static_cast<size_t>(length)});
}

}  // namespace weft::bench
