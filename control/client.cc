#include "control/client.h"

#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>
#include <fstream>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "control/address.h"

namespace weft::control {
namespace {

constexpr timeval kPatience{.tv_sec = 5, .tv_usec = 0};
constexpr size_t kLongestSuffix = 16;

bool SendAll(int fd, const std::string& text) {
  for (size_t sent = 0; sent < text.size();) {
    const ssize_t count = send(fd, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    sent += static_cast<size_t>(count);
  }
  return true;
}

// What stands behind the prefix in the names of this network namespace: "4711", "4711.17".
std::vector<std::string> Names() {
  std::vector<std::string> names;
  std::ifstream table("/proc/net/unix");
  const std::string mark = std::string("@") + kNamePrefix;
  for (std::string line; std::getline(table, line);) {
    const size_t at = line.rfind(mark);
    if (at != line.npos) names.push_back(line.substr(at + mark.size()));
  }
  return names;
}

// Names of abstract sockets are anybody's to take: of those that are this process's by name the one whose owner is the user.
// -1: there is none, and `others` whether there is any; or `*error` is why no socket could be made.
int ConnectTo(pid_t pid, bool* others, int* error) {
  const std::string own = std::to_string(pid);
  std::vector<std::string> suffixes{""};
  for (const std::string& name : Names()) {
    if (name.starts_with(own + ".")) suffixes.push_back(name.substr(own.size()));
  }
  *others = false;
  *error = 0;
  const auto give_up_at = std::chrono::steady_clock::now() + std::chrono::seconds(kPatience.tv_sec);
  for (const std::string& suffix : suffixes) {
    if (suffix.size() > kLongestSuffix) continue;
    if (std::chrono::steady_clock::now() >= give_up_at) break;  // names of others that accept nobody
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
      *error = errno;
      return -1;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &kPatience, sizeof kPatience);
    socklen_t length = 0;
    const sockaddr_un address = AddressOf(pid, &length, suffix);
    if (connect(fd, reinterpret_cast<const sockaddr*>(&address), length) == 0) {
      ucred peer{};
      socklen_t peer_length = sizeof peer;
      if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &peer_length) == 0 && peer.uid == geteuid()) return fd;
      *others = true;
    }
    close(fd);
  }
  return -1;
}

}  // namespace

Result<Reply, std::string> Ask(pid_t pid, const std::string& command, const std::string& body) {
  const std::string who = "process " + std::to_string(pid);
  bool others = false;
  int error = 0;
  const Descriptor socket(ConnectTo(pid, &others, &error));
  if (socket.get() < 0) {
    if (error != 0) return "cannot make a socket: " + DescribeShortage(error);
    if (kill(pid, 0) != 0 && errno == ESRCH) return who + " does not exist";
    if (others) return who + " belongs to another user";
    return who + " uses no RDMA device of Weft (yet), was started with WEFT_CONTROL=off, or is in another network namespace";
  }
  if (!SendAll(socket.get(), command + "\n" + body)) return who + " does not listen: " + std::strerror(errno);
  shutdown(socket.get(), SHUT_WR);
  std::string reply;
  char buffer[65536];
  for (;;) {
    const ssize_t count = recv(socket.get(), buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == ECONNRESET && !reply.empty()) break;  // it ended right after the answer
    if (count < 0) return who + " does not answer" + (errno == EAGAIN ? " within 5 s; is it stopped?" : std::string(": ") + std::strerror(errno));
    if (count == 0) break;
    reply.append(buffer, static_cast<size_t>(count));
  }
  if (reply.starts_with("ok\n")) return Reply{reply.substr(3)};
  if (reply.starts_with("error\n")) return reply.substr(6);
  return who + " gave no answer; it may belong to another user, or be about to end";
}

std::vector<pid_t> Processes() {
  std::vector<pid_t> found;
  for (const std::string& name : Names()) {
    pid_t pid = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), pid).ec == std::errc()) found.push_back(pid);
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace weft::control
