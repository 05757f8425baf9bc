#ifndef MPI_HYBRID_P2P_REQUEST_NEWS_H_
#define MPI_HYBRID_P2P_REQUEST_NEWS_H_

namespace weft::mpi {

// Something has changed that a thread which sleeps in MPI may wait for: a request is complete, a message is there, a
// process died. Whoever changes it tells; Progress, which alone knows who sleeps, listens. Guarded by the library's
// lock.
class News {
 public:
  // Cheap; nothing happens while nobody sleeps.
  static void Tell() {
    if (sleepers_ != 0) listener_();
  }
  // A thread is about to sleep, or does not sleep any more.
  static void AddSleeper() { ++sleepers_; }
  static void RemoveSleeper() { --sleepers_; }
  // Before the first sleeper. `listener` may not communicate.
  static void Listen(void (*listener)()) { listener_ = listener; }

 private:
  static inline void (*listener_)() = nullptr;
  static inline int sleepers_ = 0;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_NEWS_H_
