#ifndef MPI_HYBRID_SHM_GATHERING_H_
#define MPI_HYBRID_SHM_GATHERING_H_

#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::shm {

class Host;

// How the ranks of a job on one host come to have a NodeSegment, while the job starts. What the launcher says of where
// ranks are is a claim; here it is proven.
//
// The first of them, the host, makes the memory, listens on an abstract unix socket and publishes its name before the
// job's first fence: Begin. After that fence the others connect to it: Join. That they can proves one kernel and one
// network namespace; the kernel says whose process is at the other end (SO_PEERCRED): one of this user, which it knows
// by the number by which that one knows itself (one pid namespace); and each side proves that it knows the job's secret.
//
//   host    nonce : 16                                                 one message each (SOCK_SEQPACKET)
//   guest   nonce : 16 | rank : 4 | pid : 4 | pid namespace : 8 | proof : 32
//   host    proof : 32, and the descriptor of the memory
//
// Who comes as anything else is let go without a word. Whoever cannot join says why in the trace, and is reached as
// ranks of other hosts are. After the next fence it is known who joined: End, NodeSegment::Settle.
class Gathering {
 public:
  // `ranks`: of MPI_COMM_WORLD that the launcher put on this host, ascending, this one among them.
  Gathering(Job& job, std::vector<int> ranks);
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  // Before the fence at which the job agrees on its secret. None of these fails: at worst there is no segment.
  void Begin();
  // Once it has. Null and `why`: this process does not join. Waits for the host for at most kPatience.
  std::unique_ptr<NodeSegment> Join(std::string* why);
  // Nobody joins any more.
  void End();

  static constexpr int kPatienceSeconds = 10;

 private:
  std::unique_ptr<NodeSegment> Visit(const std::string& published, std::string* why);

  Job& job_;
  const std::vector<int> ranks_;
  const int place_;
  std::string why_not_;  // the host has no memory to give
  std::unique_ptr<NodeSegment> made_;
  std::unique_ptr<Host> host_;
};

}  // namespace weft::mpi::shm

#endif  // MPI_HYBRID_SHM_GATHERING_H_
