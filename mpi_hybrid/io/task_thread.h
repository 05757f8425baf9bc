#ifndef MPI_HYBRID_IO_TASK_THREAD_H_
#define MPI_HYBRID_IO_TASK_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weft::mpi::io {

// A thread that carries out tasks one after the other, in the order in which they were submitted. All signals are
// blocked in it, because they are meant for the program.
class TaskThread {
 public:
  TaskThread();
  // Carries out the remaining tasks first. If tasks take the library's lock, the caller must not hold it.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void Submit(std::function<void()> task);

 private:
  void Run();

  std::mutex mutex_;  // guards the members up to the thread; no other lock is taken while it is held
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TASK_THREAD_H_
