#ifndef MPI_HYBRID_CORE_JOB_H_
#define MPI_HYBRID_CORE_JOB_H_

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "impi/job/ranks.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/core/told_deaths.h"

namespace weft::pmi {
class Client;
}

namespace weft::mpi {

class ImpiWorld;

// This process's rank in the job, and the means of the job to exchange addresses before any connection exists. MPI_Init
// (api/init.cc) makes it from PMI. A process that was not started by a launcher is a job of one rank.
struct Job {
  Job();
  ~Job();

  int rank = 0;
  int size = 1;
  int appnum = -1;         // MPI_APPNUM, or -1
  int universe_size = -1;  // MPI_UNIVERSE_SIZE, or -1
  std::vector<std::string> hosts;  // numeric addresses at which others may reach this process, the likeliest first
  bool one_host = true;   // the launcher started all ranks on this host
  int ranks_on_host = 1;  // including this one
  std::vector<int> ranks_here;  // their ranks, ascending: as the launcher tells, or all ranks if it tells nothing
  std::vector<int> host_of;  // by rank: a number for its host, the same at all ranks; empty: the launcher tells nothing
  std::unique_ptr<pmi::Client> pmi;
  bool tells_deaths = false;  // the launcher reports deaths of ranks of its jobs, in:
  ToldDeaths told_deaths;
  // the processes of this job, which share a secret that only the job's ranks know, and those that joined
  ProcessTable processes;
  std::unique_ptr<ImpiWorld> impi;  // null: the job has no other client
  Descriptor impi_agent;            // to the agent of this host, until the device has it
  std::map<impi::HostRank, Descriptor> impi_hosts;  // with which this process takes the agent's place (impi/entry/hello.h), until the device has them

  // Publishes this process's `value` under `key` (its rank is added). Others can read it after Fence(). Values are
  // printable, have no blanks and are at most as long as PMI allows (1024 bytes).
  Error Publish(const std::string& key, const std::string& value);
  // Collective. Returns when all ranks have published their values.
  Error Fence();
  // The value that `process` published. MPI_ERR_OTHER: it published none.
  Error Lookup(const std::string& key, ProcessId process, std::string* value);
  // All values that `process` published.
  Error CardsOf(ProcessId process, Cards* cards);

 private:
  Cards own_;  // published by this process; the keys are the same at all ranks of the job
};

// The job of this process; valid between MPI_Init and MPI_Finalize.
Job& ThisJob();

// Collective. Connects to the launcher, fills in ThisJob() and agrees on the job's secret. From then on, this process
// ends when the launcher dies. `publish_early` is called before the fence of that agreement: values that it publishes
// can be read by all ranks when JoinJob returns.
Error JoinJob(void (*publish_early)(Job& job) = nullptr);
// Collective. Leaves the job in an orderly way.
Error LeaveJob();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_CORE_JOB_H_
