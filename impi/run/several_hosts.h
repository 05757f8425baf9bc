#ifndef IMPI_RUN_SEVERAL_HOSTS_H_
#define IMPI_RUN_SEVERAL_HOSTS_H_

#include <string>

#include "base/result.h"
#include "impi/run/client_options.h"
#include "impi/run/ranks_process.h"
#include "pmi/launch/options.h"
#include "pmi/launch/placement.h"

namespace weft::impi {

// The life of a client whose ranks run on other hosts than this one, or on several: an agent on each host, which mpiexec starts before the ranks. This process
// speaks with the server, and ends the job everywhere if an agent fails. `placement`: of the ranks that `process` starts. Returns the exit status of the client,
// or why the job has not begun: a sentence.
Result<int, std::string> RunOnSeveralHosts(const ClientOptions& options, const pmi::Options& mpiexec, const pmi::Placement& placement, RanksProcess process);

}  // namespace weft::impi

#endif  // IMPI_RUN_SEVERAL_HOSTS_H_
