#include "mpi_hybrid/dynamic/beside.h"

#include <pthread.h>
#include <signal.h>

#include <atomic>

#include "mpi_hybrid/core/lock.h"
#include "mpi_hybrid/p2p/progress.h"

namespace weft::mpi {
namespace {

struct Errand {
  const std::function<void()>& task;
  std::atomic<bool> done{false};
};

void* Run(void* argument) {
  Errand& errand = *static_cast<Errand*>(argument);
  errand.task();
  errand.done = true;
  Progress::WakeFromOutside();
  return nullptr;
}

// The program's signals go to the program's threads.
bool StartThread(Errand& errand, pthread_t* thread) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  const bool started = pthread_create(thread, nullptr, Run, &errand) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

void RunBeside(const std::function<void()>& task) {
  Errand errand{.task = task};
  pthread_t thread;
  if (!StartThread(errand, &thread)) {  // without progress then, but others come in
    const UnlockGuard unlocked;
    task();
    return;
  }
  Progress::WaitUntil([&] { return errand.done.load(); });
  pthread_join(thread, nullptr);
}

}  // namespace weft::mpi
