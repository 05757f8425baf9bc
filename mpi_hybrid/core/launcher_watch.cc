#include "mpi_hybrid/core/launcher_watch.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

namespace weft::mpi {
namespace {

struct Watch {
  pthread_t thread;
  int launcher = -1;
  int stop = -1;  // eventfd
  int rank = 0;
  std::function<bool()> hear;  // or none
};

Watch* g_watch = nullptr;

void* Run(void* argument) {
  const Watch& watch = *static_cast<Watch*>(argument);
  const short events = static_cast<short>(POLLRDHUP | (watch.hear ? POLLIN : 0));
  pollfd fds[] = {{watch.launcher, events, 0}, {watch.stop, POLLIN, 0}};
  for (;;) {
    if (poll(fds, 2, -1) < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (fds[1].revents != 0) return nullptr;
    if (fds[0].revents != POLLIN) break;
    if (!watch.hear()) fds[0].events = POLLRDHUP;
  }
  const std::string line = "weft: rank " + std::to_string(watch.rank) + ": the launcher is gone; this process ends\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
  _exit(1);
}

}  // namespace

void WatchLauncher(int fd, int rank, std::function<bool()> hear) {
  if (fd < 0 || g_watch != nullptr) return;
  auto* watch = new Watch;
  watch->launcher = fd;
  watch->rank = rank;
  watch->hear = std::move(hear);
  watch->stop = eventfd(0, EFD_CLOEXEC);
  // The program's signals go to the program's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 256 * 1024);
  const bool started = watch->stop >= 0 && pthread_create(&watch->thread, &attributes, Run, watch) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (started) {
    g_watch = watch;
    return;
  }
  // Without it the rank still notices at its next call that needs the launcher.
  if (watch->stop >= 0) close(watch->stop);
  delete watch;
}

void StopWatchingLauncher() {
  if (g_watch == nullptr) return;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(g_watch->stop, &one, sizeof one);
  pthread_join(g_watch->thread, nullptr);
  close(g_watch->stop);
  delete g_watch;
  g_watch = nullptr;
}

}  // namespace weft::mpi
