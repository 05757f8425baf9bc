#include "impi/run/mpiexec_child.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace weft::impi {

Result<pid_t, std::string> ForkForMpiexec() {
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0) return "cannot start a process for mpiexec: " + std::string(std::strerror(errno));
  if (pid > 0) return pid;
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  unsetenv("IMPI_AUTH_KEY");
  unsetenv("IMPI_AUTH_NONE");
  return pid;
}

int ExitStatusOf(int wait_status) { return WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status); }

Result<GonePipe, std::string> GonePipe::Open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return "no pipe to mpiexec: " + std::string(std::strerror(errno));
  return GonePipe{Descriptor(ends[0]), Descriptor(ends[1])};
}

std::function<void(const std::vector<int>&)> GonePipe::Teller(int fd) {
  return [fd](const std::vector<int>& gone) {
    for (const int32_t number : gone) (void)!write(fd, &number, sizeof number);
  };
}

bool GonePipe::Read(int fd, std::vector<int>* gone) {
  int32_t number;
  ssize_t count;
  while ((count = read(fd, &number, sizeof number)) == sizeof number || (count < 0 && errno == EINTR)) {
    if (count > 0) gone->push_back(number);
  }
  return count != 0;
}

}  // namespace weft::impi
