#include "pmi/launch/greeting.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/deadline.h"
#include "base/hex.h"
#include "pmi/launch/connection.h"

namespace weft::pmi {

using Clock = std::chrono::steady_clock;

void ConfigureTcp(int fd) {
  const int on = 1;
  const int idle_seconds = 10, interval_seconds = 5, probes = 4;
  static_assert(10 + 5 * 4 == std::chrono::seconds(kSilence).count());
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds, sizeof(idle_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds, sizeof(interval_seconds));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

std::optional<std::string> ReadLine(int fd, Clock::time_point deadline) {
  std::string line;
  while (line.size() < kLongestGreeting) {
    pollfd entry{fd, POLLIN, 0};
    char c = 0;
    if (poll(&entry, 1, MillisecondsUntil(deadline)) == 0) return std::nullopt;
    const long count = ReadSome(fd, &c, 1);
    if (count == -EAGAIN) continue;
    if (count <= 0) return std::nullopt;
    if (c == '\n') return line;
    line.push_back(c);
  }
  return std::nullopt;
}

bool SendText(int fd, const std::string& text) {
  return send(fd, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
}

bool Proves(const std::string& digits, const JobSecret& secret, const char* side, const Said& said) {
  JobSecret::Proof proof;
  return ParseHex(digits, proof) && secret.Verifies(proof, side, said.bytes());
}

}  // namespace weft::pmi
