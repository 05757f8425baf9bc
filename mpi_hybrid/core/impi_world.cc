#include "mpi_hybrid/core/impi_world.h"

#include <mpi.h>

#include <string>
#include <utility>

#include "base/check.h"
#include "base/job_secret.h"

namespace weft::mpi {
namespace {

// Known only to this process's table; the id of a job is a hash, and never this.
JobId IdOf(impi::ClientRank client) {
  JobId id;
  id.bytes = {'I', 'M', 'P', 'I'};
  id.bytes.back() = static_cast<uint8_t>(client.value);
  return id;
}

}  // namespace

ImpiWorld::ImpiWorld(impi::Job job, std::vector<ProcessId> own, ProcessTable& table, uint32_t lam_clients)
    : job_(std::move(job)), self_(table.self()), lam_clients_(lam_clients) {
  first_foreign_ = end_ = table.world_size();
  WEFT_CHECK(table.limit() == first_foreign_ && own.size() == static_cast<size_t>(first_foreign_));
  rank_of_.resize(own.size());
  std::vector<int32_t> of_client(static_cast<size_t>(job_.clients()));
  const JobSecret unused = JobSecret::Random();  // no connection is authenticated by it
  auto next_own = own.begin();
  for (int32_t at = 0; at < static_cast<int32_t>(job_.processes().size()); ++at) {
    const impi::WorldRank rank(at);
    const impi::ClientRank client = job_.host(job_.process(rank).host).client;
    const int32_t in_client = of_client[static_cast<size_t>(client.value)]++;
    if (client == job_.self()) {
      WEFT_CHECK(next_own != own.end());
      process_of_.push_back(*next_own);
      rank_of_[static_cast<size_t>(*next_own++)] = rank;
      continue;
    }
    const ProcessId process = table.Add({.job = IdOf(client), .rank = in_client}, Bond{.id = IdOf(client), .secret = unused}, {});
    WEFT_CHECK(process == end_);
    table.Hold(process, 1);
    ++end_;
    process_of_.push_back(process);
    rank_of_.push_back(rank);
  }
  WEFT_CHECK(next_own == own.end());
  table.set_describe([this](ProcessId process) { return IsMember(process) ? job_.NameOf(RankOf(process)) : std::string(); });
}

int ImpiWorld::OthersOnMachine() const {
  const impi::HostId here = impi::Canonical(job_.host(job_.process(self()).host).address);
  int others = 0;
  for (const impi::Job::Host& host : job_.hosts()) {
    if (impi::Canonical(host.address) != here) continue;
    others += (host.processes == 1 ? 0 : 1) + (host.client == job_.self() ? 0 : host.processes);
  }
  return others;
}

Error ImpiWorld::TakeContext(uint64_t highest, uint64_t* context) {
  if (highest >= kMostContext - 1) {
    return Error(MPI_ERR_OTHER, "IMPI has no more context ids: a process of the job has seen " + std::to_string(highest) + ", and the highest is " +
                                    std::to_string(kMostContext));
  }
  *context = highest + 1;
  seen_context_ = highest + 2;
  if (seen_context_ % 2 == 0) ++seen_context_;
  return {};
}

}  // namespace weft::mpi
