#ifndef MPI_HYBRID_COLL_TESTING_IN_MEMORY_RANKS_H_
#define MPI_HYBRID_COLL_TESTING_IN_MEMORY_RANKS_H_

#include <deque>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "mpi_hybrid/coll/schedule.h"

namespace weft::mpi {

// Carries out the schedules of all ranks of a communicator in one thread. Steps run in an order drawn from `random`.
// Messages of a pair with one tag stay in order. Data is read from the sender's memory at the start of its round, or as late as the
// arrival.
class InMemoryRanks {
 public:
  // `remote_size` 0: an intracommunicator. Otherwise the schedules of the second group's ranks follow those of the
  // first.
  InMemoryRanks(std::mt19937& random, int size, int remote_size = 0);

  Schedule& operator[](int process) { return processes_[static_cast<size_t>(process)].schedule; }
  // Runs until all schedules have finished. Returns an empty string, or a description of the error: no rank can go on,
  // messages are left over, or lengths do not match.
  std::string Run();
  // After Run: whether this process finished its schedule.
  bool Finished(int process) const;

 private:
  struct Process {
    Schedule schedule;
    size_t next = 0;
    int pending = 0;
  };
  struct Posted {
    int process;
    const Step* step;
    std::vector<uint8_t> data;  // sends: a copy, when `copied`
    bool copied = false;
  };
  struct Pair {
    std::deque<Posted> sends, receives;
  };
  using PairKey = std::tuple<int, int, bool, int>;  // from, to, over the local communicator, tag

  int PeerOf(int process, const Step& step) const;
  bool StartRound(int process);
  bool Deliver(Pair& pair);

  std::mt19937& random_;
  const int size_;
  const bool inter_;
  std::vector<Process> processes_;
  std::map<PairKey, Pair> pairs_;
  std::string failure_;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_TESTING_IN_MEMORY_RANKS_H_
