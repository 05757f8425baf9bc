#ifndef MPI_HYBRID_P2P_REQUEST_NEWS_H_
#define MPI_HYBRID_P2P_REQUEST_NEWS_H_

namespace weft::mpi {

// Something has changed that a thread sleeping in MPI may wait for: a request completed, a message arrived, a process
// died. The code that makes the change calls Tell; Progress, which alone knows of sleeping threads, listens. Guarded by
// the library's lock.
class News {
 public:
  // Cheap: nothing happens if no thread sleeps.
  static void Tell() {
    if (sleepers_ != 0) listener_();
  }
  // A thread is about to sleep; it no longer sleeps.
  static void AddSleeper() { ++sleepers_; }
  static void RemoveSleeper() { --sleepers_; }
  // Call it before the first AddSleeper. `listener` must not communicate.
  static void Listen(void (*listener)()) { listener_ = listener; }

 private:
  static inline void (*listener_)() = nullptr;
  static inline int sleepers_ = 0;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_NEWS_H_
