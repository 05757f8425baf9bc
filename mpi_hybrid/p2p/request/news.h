#ifndef MPI_HYBRID_P2P_REQUEST_NEWS_H_
#define MPI_HYBRID_P2P_REQUEST_NEWS_H_

namespace weft::mpi {

// Something has changed that a thread which sleeps in MPI may wait for: a request is complete, a message is there, a
// process died. Whoever changes it tells; Progress, which alone knows who sleeps, listens. Guarded by the library's
// lock.
class News {
 public:
  // Cheap; nothing happens while nobody listens.
  static void Tell() {
    if (listener_ != nullptr) listener_();
  }
  // `listener` may not communicate.
  static void Listen(void (*listener)()) { listener_ = listener; }

 private:
  static inline void (*listener_)() = nullptr;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_REQUEST_NEWS_H_
