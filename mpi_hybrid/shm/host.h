#ifndef MPI_HYBRID_SHM_HOST_H_
#define MPI_HYBRID_SHM_HOST_H_

#include <pthread.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "base/job_secret.h"
#include "mpi_hybrid/core/descriptor.h"

namespace weft::mpi::shm {

// The side of a gathering (gathering.h) that has the memory, and gives its descriptor to those who prove themselves. Its thread runs
// while the job starts, so that nobody waits for a process that does other things.
class Host {
 public:
  Host() = default;
  ~Host() { Stop(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  // A name that nobody knows yet, and who connects to it waits. False and errno: no socket.
  bool Listen(size_t guests);
  const Nonce& name() const { return name_; }
  // From now on guests are answered: those of `ranks`. Not the owner of `memory`, which outlives it. False and errno: no
  // thread.
  bool Start(const JobSecret& secret, std::vector<int> ranks, int memory);
  void Stop();

 private:
  struct Guest {
    Descriptor socket;
    Nonce challenge;
  };

  static void* Run(void* host);
  void Serve();
  void Admit();
  void Answer(const Guest& guest) const;

  Nonce name_{};
  Descriptor listener_, stop_;
  std::vector<Guest> guests_;  // that have not said yet who they are
  std::optional<JobSecret> secret_;
  std::vector<int> ranks_;
  int memory_ = -1;
  size_t most_guests_ = 0;
  pthread_t thread_{};
  bool runs_ = false;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_HOST_H_
