#include "pmi/launch/relay.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/close_from.h"
#include "pmi/wire/message.h"

namespace weft::pmi {
namespace {

constexpr int kLifeline = 3;  // closes with this process, not with what it starts

// Whether a process of this user listens there; else EACCES. The name may be another user's when the process that it was told by is gone.
bool IsOfThisUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid()) return true;
  errno = EACCES;
  return false;
}

// What has come at `from`, to `to`. false: one of them is closed.
bool Carry(int from, int to) {
  char bytes[16384];
  const ssize_t count = read(from, bytes, sizeof(bytes));
  if (count < 0 && errno == EINTR) return true;
  if (count <= 0) return false;
  for (ssize_t sent = 0; sent < count;) {
    const ssize_t now = send(to, bytes + sent, static_cast<size_t>(count - sent), MSG_NOSIGNAL);
    if (now < 0 && errno != EINTR) return false;
    if (now > 0) sent += now;
  }
  return true;
}

int Connect(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof(address.sun_path)) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (fd >= 0 && connect(fd, reinterpret_cast<sockaddr*>(&address), length) == 0 && IsOfThisUser(fd)) return fd;
  return -1;
}

}  // namespace

std::vector<std::string> BecomeLauncherOf(const std::string& name) {
  if (const pid_t child = fork(); child != 0) _exit(child < 0 ? 1 : 0);
  CloseFrom(kLifeline + 1);  // what the process left open for its own children
  fcntl(kLifeline, F_SETFD, FD_CLOEXEC);
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error);
  return {"-host", "localhost", "-n", "1", self, "--relay", name};
}

int RelayMain(const std::string& name) {
  const char* descriptor = secure_getenv("PMI_FD");
  const int launcher = ParseInt(descriptor == nullptr ? "" : descriptor).value_or(-1);
  if (launcher < 0 || fcntl(launcher, F_GETFD) < 0) {
    std::fprintf(stderr, "mpiexec --relay is for mpiexec's own use: it expects a launcher at PMI_FD\n");
    return 2;
  }
  const int process = Connect(name);
  if (process < 0) {
    std::fprintf(stderr, "mpiexec: the process that started this mpiexec is gone: %s\n", std::strerror(errno));
    return 1;
  }
  for (;;) {
    pollfd entries[] = {{process, POLLIN, 0}, {launcher, POLLIN, 0}};
    if (poll(entries, 2, -1) < 0 && errno != EINTR) return 1;
    if (entries[0].revents != 0 && !Carry(process, launcher)) return 0;
    if (entries[1].revents != 0 && !Carry(launcher, process)) return 0;
  }
}

}  // namespace weft::pmi
