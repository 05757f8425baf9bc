#include "mpi_hybrid/p2p/impi/enter_job.h"

#include <mpi.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "impi/entry/hello.h"
#include "impi/run/enter.h"
#include "mpi_hybrid/core/impi_world.h"
#include "pmi/client.h"

namespace weft::mpi {
namespace {

Error Failed(const std::string& why) { return Error(MPI_ERR_OTHER, "entering the IMPI job: " + why); }

}  // namespace

Error EnterImpiJob(Job& job) {
  const char* const address = secure_getenv(impi::kAgentVariable);
  if (address == nullptr || *address == '\0' || job.pmi->spawned()) return {};
  auto entered = impi::EnterJob(address, {.rank = job.rank, .takes_connections = true});
  if (!entered.ok()) return Failed(entered.error());
  for (auto& [host, connection] : entered->hosts) job.impi_hosts.emplace(host, Descriptor(connection.Release()));
  return EnterImpiJob(job, Descriptor(entered->agent.Release()), std::move(entered->welcome));
}

Error EnterImpiJob(Job& job, Descriptor agent, impi::Welcome welcome) {
  if (welcome.own.size() != static_cast<size_t>(job.size)) {
    return Failed("this client has " + std::to_string(welcome.own.size()) + " processes in it, and the launcher started " + std::to_string(job.size) +
                  "; does the program start MPI programs with a launcher of their own?");
  }
  std::vector<ProcessId> own(welcome.own.begin(), welcome.own.end());
  job.impi = std::make_unique<ImpiWorld>(std::move(welcome.job), std::move(own), job.processes, welcome.lam_clients);
  job.impi_agent = std::move(agent);
  return {};
}

}  // namespace weft::mpi
