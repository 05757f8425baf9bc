#include "mpi_hybrid/core/job.h"

#include <mpi.h>

#include <functional>
#include <optional>

#include "base/hex.h"
#include "base/job_secret.h"
#include "mpi_hybrid/core/host_address.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job_version.h"
#include "mpi_hybrid/core/launcher_watch.h"
#include "pmi/client.h"
#include "pmi/process_mapping.h"

namespace weft::mpi {
namespace {

constexpr char kSecretKey[] = "weft_secret";

Error Failed(const std::string& what, const std::string& why) {
  return why.empty() ? Error() : Error(MPI_ERR_OTHER, what + ": " + why);
}

std::string KeyOfRank(const std::string& key, int rank) { return key + "-" + std::to_string(rank); }

// The launcher's, or rank 0 makes one.
Error AgreeOnSecret(Job& job) {
  if (job.size == 1) {
    // Whoever tells other jobs of this one's death has to know what it is called.
    const auto given = job.tells_deaths ? job.pmi->Get(kSecretKey) : Result<std::string, pmi::PmiError>(pmi::PmiError{});
    const auto secret = given.ok() ? JobSecret::FromHex(*given) : std::nullopt;
    job.processes.Start(secret ? *secret : JobSecret::Random(), 0, 1);
    return {};
  }
  if (job.rank == 0 && !job.pmi->Get(kSecretKey).ok()) {
    WEFT_MPI_TRY(
        Failed("giving the job's secret to the launcher", job.pmi->Put(kSecretKey, JobSecret::Random().ToHex())));
  }
  WEFT_MPI_TRY(PublishVersion(job));
  WEFT_MPI_TRY(job.Fence());
  WEFT_MPI_TRY(CompareVersion(job));
  auto digits = job.pmi->Get(kSecretKey);
  if (!digits.ok()) return Failed("getting the job's secret from the launcher", digits.error().message);
  const auto secret = JobSecret::FromHex(*digits);
  if (!secret) return Error(MPI_ERR_OTHER, "the launcher's secret of the job is not 32 hexadecimal digits");
  job.processes.Start(*secret, job.rank, job.size);
  return {};
}

}  // namespace

Job::Job() = default;
Job::~Job() = default;

Error Job::Publish(const std::string& key, const std::string& value) {
  if (value.size() >= pmi->max_value_length()) {
    return Error(MPI_ERR_INTERN, "the value of " + key + " has " + std::to_string(value.size()) +
                                     " characters; the launcher allows " + std::to_string(pmi->max_value_length() - 1));
  }
  WEFT_MPI_TRY(Failed("giving " + key + " to the launcher", pmi->Put(KeyOfRank(key, rank), value)));
  own_[key] = value;
  return {};
}

Error Job::Fence() { return Failed("waiting for the other ranks at start", pmi->Barrier()); }

Error Job::Lookup(const std::string& key, ProcessId process, std::string* value) {
  const auto missing = [&](const std::string& why) {
    return Error(MPI_ERR_OTHER, processes.Describe(process) + " has not published " + key + why);
  };
  if (!processes.IsOfWorld(process)) {
    const Cards cards = processes.CardsOf(process);
    const auto card = cards.find(key);
    if (card == cards.end()) return missing("; is WEFT_MPI_LLP the same in its job?");
    *value = card->second;
    return {};
  }
  if (const auto mine = own_.find(key); process == rank && mine != own_.end()) {
    *value = mine->second;
    return {};
  }
  auto found = pmi->Get(KeyOfRank(key, process));
  if (!found.ok()) return missing(": " + found.error().message);
  *value = *found;
  return {};
}

Error Job::CardsOf(ProcessId process, Cards* cards) {
  *cards = processes.CardsOf(process);
  if (!processes.IsOfWorld(process)) return {};
  for (const auto& [key, mine] : own_) WEFT_MPI_TRY(Lookup(key, process, &(*cards)[key]));
  return {};
}

Job& ThisJob() {
  static auto* job = new Job;
  return *job;
}

Error JoinJob(void (*publish_early)(Job& job)) {
  auto client = pmi::Client::Connect();
  if (!client.ok()) return Error(MPI_ERR_OTHER, "connecting to the launcher: " + client.error().message);
  Job& job = ThisJob();
  job.pmi = std::move(client).value();
  job.rank = job.pmi->rank();
  job.size = job.pmi->size();
  job.appnum = job.pmi->appnum();
  job.universe_size = job.pmi->universe_size();
  job.tells_deaths = job.pmi->WatchDeaths([&job](const std::string& world, int rank) {
    JobId other;
    if (world.empty()) job.told_deaths.Add(std::nullopt, rank);
    if (ParseHex(world, other.bytes)) job.told_deaths.Add(other, rank);
  });
  if (!job.pmi->is_singleton()) {
    WatchLauncher(job.pmi->fd(), job.rank, job.tells_deaths ? [&job] { return job.pmi->Hear(); } : std::function<bool()>());
  }
  if (job.size > 1) {
    const auto text = job.pmi->Get("PMI_process_mapping");
    const auto mapping = text.ok() ? pmi::ProcessMapping::Parse(*text) : std::nullopt;
    job.one_host = mapping && mapping->is_one_node();
    job.ranks_on_host = mapping ? mapping->RanksOnNodeOf(job.rank, job.size) : job.size;
    for (int rank = 0; rank < job.size; ++rank) {
      if (!mapping || mapping->NodeOf(rank) == mapping->NodeOf(job.rank)) job.ranks_here.push_back(rank);
      if (mapping) job.host_of.push_back(mapping->NodeOf(rank));
    }
    if (publish_early != nullptr) publish_early(job);
  }
  WEFT_MPI_TRY(AgreeOnSecret(job));
  return FindHostAddresses(job.one_host, &job.hosts);
}

Error LeaveJob() {
  StopWatchingLauncher();
  return Failed("taking leave of the launcher", ThisJob().pmi->Finalize());
}

}  // namespace weft::mpi
