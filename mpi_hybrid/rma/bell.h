#ifndef MPI_HYBRID_RMA_BELL_H_
#define MPI_HYBRID_RMA_BELL_H_

#include <cstdint>
#include <memory>
#include <mutex>

namespace weft::mpi::rma {

// Wakes a process of this host that sleeps in MPI, by a byte in a pipe that the process watches. A lost ring costs only
// time, because no process sleeps long on it (host_wait.h). Therefore a lack of descriptors is no error.
//
// Names a process's bell for other processes: an end of a pipe, which they open in /proc. The inode distinguishes it
// from a later descriptor with the same numbers.
struct BellName {
  int32_t pid = 0, fd = -1;
  uint64_t inode = 0;
};

// The bell of this process, made on first use. fd -1: it has none.
const BellName& OwnBell();
// The descriptor that becomes readable when the bell rings; -1: none.
int OwnBellDescriptor();
// Consumes the rings.
void Silence();

// The bell of another process, shared by all windows that contain it. Its descriptor is opened at the first ring and
// closed with the last owner.
class Bell {
 public:
  static std::shared_ptr<Bell> Of(const BellName& name);
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // Any thread may call it.
  void Ring();

 private:
  explicit Bell(const BellName& name) : name_(name) {}

  const BellName name_;
  std::mutex mutex_;  // guards the member below
  int fd_ = -1;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_BELL_H_
