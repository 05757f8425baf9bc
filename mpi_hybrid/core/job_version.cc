#include "mpi_hybrid/core/job_version.h"

#include <mpi.h>

#include <string>

#include "base/version.h"
#include "pmi/client.h"

namespace weft::mpi {
namespace {

std::string VersionKeyOf(int rank) { return "weft_version-" + std::to_string(rank); }

}  // namespace

Error PublishVersion(Job& job) {
  const std::string why = job.pmi->Put(VersionKeyOf(job.rank), std::string(Version()));
  return why.empty() ? Error() : Error(MPI_ERR_OTHER, "giving the version to the launcher: " + why);
}

Error CompareVersion(Job& job) {
  const int next = (job.rank + 1) % job.size;
  const auto its = job.pmi->Get(VersionKeyOf(next));
  if (its.ok() && *its == Version()) return {};
  const std::string rank = "rank " + std::to_string(next), own(Version());
  return Error(MPI_ERR_OTHER, its.ok() ? rank + " runs Weft " + *its + ", and this rank Weft " + own + "; all ranks of a job need the same version"
                                       : rank + " runs an older Weft than this rank (" + own + "), or another MPI library; all ranks of a job need the same one");
}

}  // namespace weft::mpi
