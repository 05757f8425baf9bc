#include "mpi_hybrid/coll/gather_words.h"

#include <utility>

#include "mpi_hybrid/coll/collectives.h"

namespace weft::mpi {
namespace {

Uniform UniformWords(const int* words, size_t count) { return {words, static_cast<MPI_Aint>(count), Datatype::Find(MPI_INT)}; }

}  // namespace

Error GatherWords(Comm& comm, const int* mine, size_t width, std::vector<int>* local, std::vector<int>* remote) {
  local->resize(width * static_cast<size_t>(comm.size()));
  Error gathered = AllGather(UniformWords(mine, width), UniformWords(local->data(), width), comm.inter ? *comm.local_comm : comm);
  if (!comm.inter) {
    *remote = *local;
    return gathered;
  }
  remote->resize(width * static_cast<size_t>(comm.remote_size()));
  Error across = AllGather(UniformWords(mine, width), UniformWords(remote->data(), width), comm);
  return gathered.ok() ? std::move(across) : std::move(gathered);
}

Error GatherFromAll(Comm& comm, const int* mine, size_t width, std::vector<int>* all) {
  std::vector<int> remote;
  WEFT_MPI_TRY(GatherWords(comm, mine, width, all, &remote));
  if (!comm.inter) return {};
  if (!comm.is_local_first) std::swap(*all, remote);
  all->insert(all->end(), remote.begin(), remote.end());
  return {};
}

size_t PlaceAmongAll(const Comm& comm) {
  return static_cast<size_t>(comm.rank + (comm.inter && !comm.is_local_first ? comm.remote_size() : 0));
}

}  // namespace weft::mpi
