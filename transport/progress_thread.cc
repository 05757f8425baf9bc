#include "transport/progress_thread.h"

#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/program_memory.h"

namespace weft::transport {
namespace {

// What the thread's handlers need, not the 8 MiB of a main thread: programs that call mlockall pin it.
constexpr size_t kStackBytes = 1 << 20;

// struct sched_attr as of Linux 3.14; <sched.h> has it only in newer C libraries.
struct SchedulingAttributes {
  uint32_t size = sizeof(SchedulingAttributes);
  uint32_t policy = SCHED_OTHER;
  uint64_t flags = 0;
  int32_t nice = 0;
  uint32_t priority = 0;
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;
};

// Since Linux 6.12 a runtime for SCHED_OTHER is the thread's slice: a shorter one has an earlier deadline, so a woken
// thread preempts one that spins. Older kernels refuse or ignore it, which is as well.
void AskForShortSlice() {
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // the user chose another policy
  errno = 0;
  int nice = getpriority(PRIO_PROCESS, 0);
  if (errno != 0) return;
  SchedulingAttributes attributes{.nice = nice, .runtime_ns = 100'000};
  syscall(SYS_sched_setattr, 0, &attributes, 0u);
}

}  // namespace

std::atomic<void (*)()> g_progress_pause{nullptr};

int ProgressThread::Start(std::function<void()> body) {
  body_ = std::move(body);
  pthread_attr_t attributes;
  if (int error = pthread_attr_init(&attributes); error != 0) return error;
  pthread_attr_setstacksize(&attributes, kStackBytes);

  // The new thread inherits the mask: it never runs a signal handler of the program.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = pthread_create(&thread_, &attributes, &ProgressThread::Run, this);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  return error;
}

void ProgressThread::Join() { pthread_join(thread_, nullptr); }

void* ProgressThread::Run(void* self) {
  pthread_setname_np(pthread_self(), "weft-progress");
  prctl(PR_SET_TIMERSLACK, 1000UL, 0UL, 0UL, 0UL);  // nanoseconds; the default adds 50 us to every timer
  AskForShortSlice();
  SetThreadOfOurs();
  static_cast<ProgressThread*>(self)->body_();
  return nullptr;
}

}  // namespace weft::transport
