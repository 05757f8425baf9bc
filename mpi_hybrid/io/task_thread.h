#ifndef MPI_HYBRID_IO_TASK_THREAD_H_
#define MPI_HYBRID_IO_TASK_THREAD_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace weft::mpi::io {

// A thread that carries out tasks one after the other, in the order in which they came. It takes no signals, which are the program's.
class TaskThread {
 public:
  TaskThread();
  // Carries out what is left first. Not with the library's lock if tasks take it.
  ~TaskThread();
  TaskThread(const TaskThread&) = delete;
  TaskThread& operator=(const TaskThread&) = delete;

  void Submit(std::function<void()> task);

 private:
  void Run();

  std::mutex mutex_;  // guards what follows up to the thread; nothing else is taken with it held
  std::condition_variable changed_;
  std::deque<std::function<void()>> tasks_;
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace weft::mpi::io

#endif  // MPI_HYBRID_IO_TASK_THREAD_H_
