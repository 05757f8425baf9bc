#ifndef MPI_HYBRID_SHM_BELL_H_
#define MPI_HYBRID_SHM_BELL_H_

#include <array>
#include <cstdint>
#include <span>

#include "base/job_secret.h"
#include "mpi_hybrid/core/descriptor.h"

namespace weft::mpi::shm {

// What wakes a process that sleeps in epoll: a datagram socket with an abstract name, so that one descriptor a process
// is enough, whatever the number of those who ring, and nothing is left behind. Who does not know the key cannot ring
// (a filter in the kernel drops what begins with anything else); a needless ring would only cost a look.
class Bell {
 public:
  using Key = std::array<uint8_t, 8>;

  // False and errno: no descriptor.
  bool Open();
  int fd() const { return socket_.fd(); }  // readable after a ring, until Silence()
  const Nonce& name() const { return name_; }
  const Key& key() const { return key_; }

  // Rings that of another, through ours. Never blocks; when nobody is there any more nothing happens.
  void Ring(std::span<const uint8_t, sizeof(Nonce)> name, std::span<const uint8_t, sizeof(Key)> key) const;
  // Takes the rings that came.
  void Silence() const;

 private:
  void Filter() const;

  Descriptor socket_;
  Nonce name_{};
  Key key_{};
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_BELL_H_
