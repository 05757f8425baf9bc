#include "impi/run/mpiexec_child.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
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

}  // namespace weft::impi
