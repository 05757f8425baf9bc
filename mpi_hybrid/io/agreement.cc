#include "mpi_hybrid/io/agreement.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/survive/recover.h"

namespace weft::mpi::io {
namespace {

constexpr int kHighest = 1 << 30;  // minus the rank, so that the lowest one is the largest number

struct Told {
  int mpi_class;
  char words[380];
};

const Datatype& TypeOf(MPI_Datatype handle) { return *Datatype::Find(handle); }

}  // namespace

Error Break(Comm& comm, Error error) {
  if (error.ok()) return error;
  // From one that had it from a third.
  const bool heard = comm.revoked || error.mpi_class() == MPIX_ERR_REVOKED;
  survive::Revoke(comm);
  if (!heard || error.mpi_class() == MPIX_ERR_PROC_FAILED) return error;
  return Error(MPIX_ERR_PROC_FAILED, "in a collective call on the file, another process died, or could not go on because one had died");
}

Error Meet(Comm& comm) { return Break(comm, Barrier(comm)); }

Error GatherBytes(Comm& comm, const void* mine, size_t bytes, void* all) {
  const Datatype& byte = TypeOf(MPI_BYTE);
  const auto count = static_cast<MPI_Aint>(bytes);
  return Break(comm, AllGather(Uniform{mine, count, &byte}, Uniform{all, count, &byte}, comm));
}

Error TellBytes(Comm& comm, int root, void* data, size_t bytes) {
  return Break(comm, Broadcast(data, static_cast<MPI_Aint>(bytes), TypeOf(MPI_BYTE), root, comm));
}

Error Agree(Comm& comm, const Error& mine) {
  if (comm.size() == 1) return mine;
  const int failed = mine.ok() ? 0 : kHighest - comm.rank;
  int who = 0;
  Error reduced = Break(comm, AllReduce(&failed, &who, 1, TypeOf(MPI_INT), *Op::Find(MPI_MAX), comm));
  if (!reduced.ok()) return mine.ok() ? reduced : mine;
  if (who == 0) return {};
  const int first = kHighest - who;
  if (first < 0 || first >= comm.size()) return Error(MPI_ERR_INTERN, "the ranks agree that rank " + std::to_string(first) + " failed, which does not exist");
  Told told = {};
  if (who == failed) {
    told.mpi_class = mine.mpi_class();
    const std::string words = mine.message();
    std::memcpy(told.words, words.data(), std::min(words.size(), sizeof told.words - 1));
  }
  reduced = TellBytes(comm, first, &told, sizeof told);
  if (!mine.ok()) return mine;
  WEFT_MPI_TRY(std::move(reduced));
  told.words[sizeof told.words - 1] = 0;
  const bool is_class = told.mpi_class > MPI_SUCCESS && told.mpi_class <= MPI_ERR_LASTCODE;
  return Error(is_class ? told.mpi_class : MPI_ERR_OTHER, "at rank " + std::to_string(first) + ": " + told.words);
}

}  // namespace weft::mpi::io
