#ifndef MPI_HYBRID_HOST_SEGMENT_SERVER_H_
#define MPI_HYBRID_HOST_SEGMENT_SERVER_H_

#include <pthread.h>

#include <cstddef>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/job_secret.h"

namespace weft::mpi::host {

// The side of a gathering (gathering.h) that owns the memory and sends its descriptor to authenticated guests. It has a
// thread of its own while the job starts, so that no guest waits for a process that is busy.
class SegmentServer {
 public:
  SegmentServer() = default;
  ~SegmentServer() { Stop(); }
  SegmentServer(const SegmentServer&) = delete;
  SegmentServer& operator=(const SegmentServer&) = delete;

  // Listens with a new, random name. Guests that connect wait until Start. False and errno: no socket.
  bool Listen(size_t guests);
  const Nonce& name() const { return name_; }
  // Starts to answer guests whose rank is in `ranks`. `memory` must outlive this object, which does not own it. False
  // and errno: no thread.
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
  std::vector<Guest> guests_;  // connected guests that have not sent their message yet
  std::optional<JobSecret> secret_;
  std::vector<int> ranks_;
  int memory_ = -1;
  size_t most_guests_ = 0;
  pthread_t thread_{};
  bool runs_ = false;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_SEGMENT_SERVER_H_
