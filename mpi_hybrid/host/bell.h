#ifndef MPI_HYBRID_HOST_BELL_H_
#define MPI_HYBRID_HOST_BELL_H_

#include <array>
#include <cstdint>
#include <span>

#include "base/job_secret.h"
#include "base/descriptor.h"

namespace weft::mpi::host {

// Wakes a process that sleeps in epoll. It is a datagram socket with an abstract name: one descriptor per process
// suffices for any number of senders, and nothing is left behind. A process that does not know the key cannot ring it:
// a filter in the kernel drops datagrams that begin with other bytes. An unnecessary ring costs only one check.
class Bell {
 public:
  using Key = std::array<uint8_t, 8>;

  // False and errno: no descriptor is available.
  bool Open();
  int fd() const { return socket_.get(); }  // readable after a ring, until Silence()
  const Nonce& name() const { return name_; }
  const Key& key() const { return key_; }

  // Rings the bell of another process, through this one's socket. Never blocks. No effect if that process is gone.
  void Ring(std::span<const uint8_t, sizeof(Nonce)> name, std::span<const uint8_t, sizeof(Key)> key) const;
  // Consumes the rings that have arrived.
  void Silence() const;

 private:
  void Filter() const;

  Descriptor socket_;
  Nonce name_{};
  Key key_{};
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_BELL_H_
