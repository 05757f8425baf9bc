#ifndef MPI_HYBRID_RMA_BELL_H_
#define MPI_HYBRID_RMA_BELL_H_

#include <cstdint>
#include <memory>
#include <mutex>

namespace weft::mpi::rma {

// Wakes a process of this host that sleeps in MPI: a byte in a pipe that it watches. Losing one costs time and nothing
// else, for nobody sleeps long on it (host_wait.h), so that being out of descriptors is no error.
//
// How others name a process's bell: an end of a pipe that they open in /proc. The inode tells it from whatever may have
// the numbers later.
struct BellName {
  int32_t pid = 0, fd = -1;
  uint64_t inode = 0;
};

// This process's: made on first use. fd -1: it has none.
const BellName& OwnBell();
// What becomes readable when it rings; -1: none.
int OwnBellDescriptor();
// Takes what rang.
void Silence();

// The bell of a process, which all windows share that have it: its descriptor is opened at the first ring, and closed with the last of them.
class Bell {
 public:
  static std::shared_ptr<Bell> Of(const BellName& name);
  ~Bell();
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  // From any thread.
  void Ring();

 private:
  explicit Bell(const BellName& name) : name_(name) {}

  const BellName name_;
  std::mutex mutex_;  // guards what follows
  int fd_ = -1;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_BELL_H_
