#ifndef MPI_HYBRID_HOST_GATHERING_H_
#define MPI_HYBRID_HOST_GATHERING_H_

#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/host/segment.h"

namespace weft::mpi::host {

class SegmentServer;

// How the ranks of a job on one host set up a Segment while the job starts. What the launcher says about the
// location of ranks is a claim, which is verified here.
//
// The first of these ranks, the host, makes the memory, listens on an abstract unix socket, and publishes the name of
// the socket before the job's first fence: Begin. After that fence the other ranks connect to it: Join. A successful
// connection proves that both run on one kernel and in one network namespace. The kernel tells which process is at the
// other end (SO_PEERCRED): it must belong to this user, and its pid must be the one that it uses itself, which proves
// one pid namespace. Each side proves that it knows the job's secret.
//
//   host    nonce : 16                                                 one message each (SOCK_SEQPACKET)
//   guest   nonce : 16 | rank : 4 | pid : 4 | pid namespace : 8 | proof : 32
//   host    proof : 32, and the descriptor of the memory
//
// Other processes are disconnected without a message. A rank that cannot join traces the reason, and is reached like a
// rank of another host. After the next fence it is known which ranks joined: End, Segment::Settle.
class Gathering {
 public:
  // `ranks`: the ranks of MPI_COMM_WORLD that the launcher started on this host, ascending, including this one.
  Gathering(Job& job, std::vector<int> ranks);
  ~Gathering();
  Gathering(const Gathering&) = delete;
  Gathering& operator=(const Gathering&) = delete;

  // Called before the fence at which the job agrees on its secret. None of these functions fails; at worst there is no
  // segment.
  void Begin();
  // Called after that fence. Null and `why`: this process does not join. Waits at most kPatienceSeconds for the host.
  std::unique_ptr<Segment> Join(std::string* why);
  // No more ranks may join.
  void End();

  static constexpr int kPatienceSeconds = 10;

 private:
  std::unique_ptr<Segment> Visit(const std::string& published, std::string* why);

  Job& job_;
  const std::vector<int> ranks_;
  const int place_;
  std::string why_not_;  // why the host has no memory to share
  std::unique_ptr<Segment> made_;
  std::unique_ptr<SegmentServer> server_;
};

}  // namespace weft::mpi::host

#endif  // MPI_HYBRID_HOST_GATHERING_H_
