#ifndef MPI_HYBRID_HOST_BELL_H_
#define MPI_HYBRID_HOST_BELL_H_

#include <array>
#include <cstdint>

#include "base/descriptor.h"
#include "base/job_secret.h"

namespace weft::mpi::host {

// What other processes know of a bell. All zero: there is none.
struct BellName {
  std::array<uint8_t, sizeof(Nonce)> name{};
  std::array<uint8_t, 8> key{};
};

// Wakes a process that sleeps in epoll. It is a datagram socket with an abstract name: one descriptor per process
// suffices for any number of senders, and nothing is left behind. A process that does not know the key cannot ring it:
// a filter in the kernel drops datagrams that begin with other bytes. An unnecessary ring costs only one check.
class Bell {
 public:
  // False and errno: no descriptor is available. Then it rings nobody, and has no name.
  bool Open();
  int fd() const { return socket_.get(); }  // readable after a ring, until Silence()
  const BellName& name() const { return name_; }

  // Rings the bell of another process of this network namespace, through this one's socket. Never blocks. No effect if
  // that process is gone. Any thread may call it.
  void Ring(const BellName& other) const;
  // Consumes the rings that have arrived.
  void Silence() const;

 private:
  void Filter() const;

  Descriptor socket_;
  BellName name_;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_BELL_H_
