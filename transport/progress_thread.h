#ifndef TRANSPORT_PROGRESS_THREAD_H_
#define TRANSPORT_PROGRESS_THREAD_H_

#include <pthread.h>

#include <atomic>
#include <functional>

namespace weft::transport {

// Called by the network's thread before each round of work, unless null. For the fault slow_progress.
extern std::atomic<void (*)()> g_progress_pause;

// A thread inside the program's process. It takes none of the program's signals, has a name in `top`, and asks the
// scheduler for a short time slice, so that it preempts a spinning thread of the program soon.
class ProgressThread {
 public:
  ProgressThread() = default;
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;

  // Returns 0 or an errno (EAGAIN: too many threads). `body` runs once. The caller must make it end, and call Join
  // before destruction.
  int Start(std::function<void()> body);
  void Join();

 private:
  static void* Run(void* self);

  std::function<void()> body_;
  pthread_t thread_{};
};

}  // namespace weft::transport

#endif  // TRANSPORT_PROGRESS_THREAD_H_
