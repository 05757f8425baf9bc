#ifndef MPI_HYBRID_CORE_JOB_H_
#define MPI_HYBRID_CORE_JOB_H_

#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/core/told_deaths.h"

namespace weft::pmi {
class Client;
}

namespace weft::mpi {

// This process's place in the job, and the job's means of exchanging addresses before any connection exists. Made by MPI_Init
// (api/init.cc) from PMI; a process that no launcher started is a job of one.
struct Job {
  int rank = 0;
  int size = 1;
  int appnum = -1;         // MPI_APPNUM, or -1
  int universe_size = -1;  // MPI_UNIVERSE_SIZE, or -1
  std::vector<std::string> hosts;  // numeric addresses that others may reach us by, the likeliest first
  bool one_host = true;   // the launcher started all ranks on this host
  int ranks_on_host = 1;  // this one among them
  std::vector<int> ranks_here;  // the same, ascending; as the launcher says, or all where it says nothing
  std::vector<int> host_of;     // by rank: a number for its host, the same at all ranks; empty: the launcher says nothing
  std::unique_ptr<pmi::Client> pmi;
  bool tells_deaths = false;  // the launcher, of ranks of its jobs:
  ToldDeaths told_deaths;
  ProcessTable processes;  // those of the job, by the secret that all ranks know and no one else; and those that joined

  // Publishes this process's `value` under `key` (its rank is added); visible to others after Fence(). Values are printable and
  // without blanks, of at most what PMI allows (1024 bytes).
  Error Publish(const std::string& key, const std::string& value);
  // Collective: until all ranks published what they do.
  Error Fence();
  // What `process` published. MPI_ERR_OTHER when it did not.
  Error Lookup(const std::string& key, ProcessId process, std::string* value);
  // All that it published.
  Error CardsOf(ProcessId process, Cards* cards);

 private:
  Cards own_;  // published; the keys are the same at all ranks of the job
};

// The job of this process; valid between MPI_Init and MPI_Finalize.
Job& ThisJob();

// Collective. Connects to the launcher, fills in ThisJob() and agrees on the secret; the process ends when the launcher dies from
// then on. `publish_early` is called before the fence of that: what it gives to the launcher is there for all when this returns.
Error JoinJob(void (*publish_early)(Job& job) = nullptr);
// Collective: an orderly good-bye to the launcher.
Error LeaveJob();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_JOB_H_
