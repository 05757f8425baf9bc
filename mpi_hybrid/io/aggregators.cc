#include "mpi_hybrid/io/aggregators.h"

#include <mpi.h>

#include <algorithm>
#include <new>
#include <string>
#include <tuple>
#include <utility>

#include "base/settings.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/io/agreement.h"
#include "mpi_hybrid/survive/recover.h"

namespace weft::mpi::io {
namespace {

// Of ranks with leaders `leaders`: first one of each host, then the second of each ...
std::vector<int> SpreadOverHosts(const std::vector<int>& leaders) {
  std::vector<std::tuple<int, int, int>> order;  // place on its host, host, rank
  std::vector<int> on_host(leaders.size(), 0);
  for (size_t rank = 0; rank < leaders.size(); ++rank) {
    int& there = on_host[static_cast<size_t>(leaders[rank])];
    order.emplace_back(there++, leaders[rank], static_cast<int>(rank));
  }
  std::sort(order.begin(), order.end());
  std::vector<int> ranks;
  for (const auto& [place, host, rank] : order) ranks.push_back(rank);
  return ranks;
}

// What ranks said: each follows one that follows itself.
Error CheckLeaders(const std::vector<int>& leaders) {
  for (size_t rank = 0; rank < leaders.size(); ++rank) {
    const auto leader = static_cast<size_t>(leaders[rank]);
    if (leader < leaders.size() && leaders[leader] == leaders[rank]) continue;
    return Error(MPI_ERR_INTERN, "rank " + std::to_string(rank) + " says that the first rank of its host is " + std::to_string(leaders[rank]));
  }
  return {};
}

}  // namespace

Error Aggregators::Make(Comm& comm, int64_t wanted, int64_t buffer_bytes) {
  wanted_ = wanted;
  buffer_bytes_ = buffer_bytes;
  Ref<Comm> host;
  // Without memory in common each rank is taken for a host of its own.
  const bool apart = ProcessSettings().SharesMemory() == SameHost::kOff;
  WEFT_MPI_TRY(Break(comm, apart ? Split(comm, comm.rank, 0, &host) : SplitByHost(comm, comm.rank, &host)));
  int leader = comm.rank;
  Error error = TellBytes(*host, 0, &leader, sizeof leader);
  std::vector<int> leaders(static_cast<size_t>(comm.size()));
  if (Error gathered = GatherBytes(comm, &leader, sizeof leader, leaders.data()); error.ok()) error = std::move(gathered);
  if (error.ok()) error = CheckLeaders(leaders);
  if (error.ok()) {
    ranks_ = SpreadOverHosts(leaders);
    const auto hosts = std::count_if(ranks_.begin(), ranks_.end(), [&](int rank) { return leaders[static_cast<size_t>(rank)] == rank; });
    ranks_.resize(static_cast<size_t>(std::min<int64_t>(wanted > 0 ? wanted : hosts, comm.size())));
    const auto own = std::find(ranks_.begin(), ranks_.end(), comm.rank);
    own_index_ = own != ranks_.end() ? static_cast<int>(own - ranks_.begin()) : -1;
    error = MakeShared(*host, leaders, leader);
  }
  return Agree(comm, error);
}

Error Aggregators::MakeShared(Comm& host, const std::vector<int>& leaders, int own_leader) {
  memory_.assign(ranks_.size(), nullptr);
  shares_.clear();
  const auto is_here = [&](int rank) { return leaders[static_cast<size_t>(rank)] == own_leader; };
  if (std::none_of(ranks_.begin(), ranks_.end(), is_here)) return {};
  const int64_t bytes = own_index_ >= 0 ? kBuffers * buffer_bytes_ : 0;
  Error shared = host.size() > 1 ? AllocateSharedWindow(bytes, 1, host, nullptr, &window_) : Error(MPI_ERR_RMA_SHARED, "alone");
  if (shared.mpi_class() == MPIX_ERR_PROC_FAILED || shared.mpi_class() == MPIX_ERR_REVOKED) return Break(host, std::move(shared));
  if (shared.ok()) {
    for (size_t i = 0; i < ranks_.size(); ++i) {
      if (!is_here(ranks_[i])) continue;
      const auto rank_there = static_cast<int>(std::count(leaders.begin(), leaders.begin() + ranks_[i], own_leader));
      MPI_Aint size;
      int unit;
      void* base = nullptr;
      WEFT_MPI_TRY(window_->SharedQuery(rank_there, &size, &unit, &base));
      memory_[i] = static_cast<uint8_t*>(base);
    }
    for (const int other : leaders) shares_.push_back(other == own_leader);
    return {};
  }
  window_ = nullptr;
  if (own_index_ < 0) return {};
  alone_.reset(new (std::nothrow) uint8_t[static_cast<size_t>(bytes)]);
  if (!alone_) return Error(MPI_ERR_NO_MEM, "there is no memory for buffers of " + std::to_string(bytes) + " bytes (hint cb_buffer_size)");
  memory_[static_cast<size_t>(own_index_)] = alone_.get();
  return {};
}

Error Aggregators::Drop(bool broken) {
  if (!window_) return {};
  const Ref<Comm> comm = window_->comm;
  if (broken) survive::Revoke(*comm);
  Error error = Break(*comm, window_->Free());
  window_ = nullptr;
  return error;
}

}  // namespace weft::mpi::io
