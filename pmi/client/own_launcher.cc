#include "pmi/client/own_launcher.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/deadline.h"
#include "base/descriptor.h"
#include "base/file_limit.h"
#include "base/high_descriptor.h"

namespace weft::pmi {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{60};
constexpr int kLifeline = 3;  // of mpiexec: the end of a pipe that closes with it

PmiError Problem(const std::string& what, int error) { return PmiError{"to start mpiexec: " + what + ": " + (IsShortage(error) ? DescribeShortage(error) : std::strerror(error))}; }

// Listens at a name that the kernel chooses. The name, or nothing, and errno.
std::string Listen(int fd) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t length = sizeof(sa_family_t);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), length) != 0 || listen(fd, 4) != 0) return {};
  length = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) != 0) return {};
  // It begins with a zero, which is not told.
  return {address.sun_path + 1, length - offsetof(sockaddr_un, sun_path) - 1};
}

bool IsOfThisUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == geteuid();
}

// 0, or errno. mpiexec forks at once and its first process ends, so that none is left for this one to wait for.
int Start(const std::string& mpiexec, const std::string& name, int lifeline) {
  // A descriptor that is there already would stay closed on exec.
  const Descriptor moved(fcntl(lifeline, F_DUPFD_CLOEXEC, kLifeline + 1));
  if (moved.get() < 0) return errno;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, moved.get(), kLifeline);
  // Not the mask of the thread that asks, which may block all signals.
  sigset_t none;
  sigemptyset(&none);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  char option[] = "--singleton";
  char* words[] = {const_cast<char*>(mpiexec.c_str()), option, const_cast<char*>(name.c_str()), nullptr};
  pid_t child = -1;
  const int error = posix_spawn(&child, mpiexec.c_str(), &actions, &attributes, words, environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  while (error == 0 && waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  return error;
}

// The relay's connection.
Result<int, PmiError> Await(int listener, int lifeline, const std::string& mpiexec) {
  for (const auto deadline = Clock::now() + kPatience;;) {
    pollfd entries[] = {{listener, POLLIN, 0}, {lifeline, POLLIN, 0}};
    const int ready = poll(entries, 2, MillisecondsUntil(deadline));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Problem("poll", errno);
    if (ready == 0) return PmiError{mpiexec + " did not start a job within " + std::to_string(kPatience.count()) + " s"};
    if (entries[0].revents != 0) {
      Descriptor relay(AcceptOnListener(listener));
      if (!relay && IsShortage(errno)) return Problem("a connection", errno);
      if (relay && IsOfThisUser(relay.get()) && fcntl(relay.get(), F_SETFL, 0) == 0) return relay.Release();  // its user waits in read(2)
    } else if (entries[1].revents != 0) {
      return PmiError{mpiexec + " ended before it had started a job; is it Weft's, of the same version?"};
    }
  }
}

}  // namespace

Result<std::string, PmiError> FindMpiexec() {
  static constexpr char kVariable[] = "WEFT_PMI_MPIEXEC";
  if (const char* named = secure_getenv(kVariable); named != nullptr && *named != '\0') {
    if (access(named, X_OK) == 0) return std::string(named);
    return PmiError{std::string(kVariable) + "=" + named + " cannot be executed: " + std::strerror(errno)};
  }
  Dl_info library{};
  std::error_code error;
  std::filesystem::path beside = "/";
  if (dladdr(reinterpret_cast<void*>(&FindMpiexec), &library) != 0 && library.dli_fname != nullptr) {
    beside = std::filesystem::canonical(library.dli_fname, error).parent_path();
  }
  const std::filesystem::path programs = beside.parent_path().parent_path() / "bin";
  // The name in Weft's Debian package comes first: mpiexec beside it may be another MPI's.
  for (const char* name : {"mpiexec.weft", "mpiexec"}) {
    if (const std::string path = programs / name; access(path.c_str(), X_OK) == 0) return path;
  }
  return PmiError{"this process was not started by mpiexec and needs one, but there is none at " + (programs / "mpiexec").string() + "; " + kVariable + " can name another place"};
}

Result<int, PmiError> StartOwnLauncher() {
  const auto mpiexec = FindMpiexec();
  if (!mpiexec) return mpiexec.error();
  Descriptor listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const std::string name = Listen(listener.get());
  if (name.empty()) return Problem("a socket", errno);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return Problem("a pipe", errno);
  Descriptor lifeline(ends[0]), its_lifeline(ends[1]);
  if (const int error = Start(mpiexec.value(), name, its_lifeline.get()); error != 0) return Problem(mpiexec.value(), error);
  its_lifeline.Close();
  return Await(listener.get(), lifeline.get(), mpiexec.value());
}

}  // namespace weft::pmi
