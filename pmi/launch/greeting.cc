#include "pmi/launch/greeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "base/deadline.h"
#include "base/hex.h"
#include "pmi/launch/connection.h"

namespace weft::pmi {

using Clock = std::chrono::steady_clock;

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
