#include "mpi_hybrid/io/agreement.h"

#include <mpi.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "mpi_hybrid/coll/collectives.h"

namespace weft::mpi::io {
namespace {

constexpr int kHighest = 1 << 30;  // minus the rank, so that the lowest one is the largest number

struct Told {
  int mpi_class;
  char words[380];
};

const Datatype& TypeOf(MPI_Datatype handle) { return *Datatype::Find(handle); }

}  // namespace

Error GatherBytes(Comm& comm, const void* mine, size_t bytes, void* all) {
  const Datatype& byte = TypeOf(MPI_BYTE);
  const auto count = static_cast<MPI_Aint>(bytes);
  return AllGather(Uniform{mine, count, &byte}, Uniform{all, count, &byte}, comm);
}

Error TellBytes(Comm& comm, int root, void* data, size_t bytes) {
  return Broadcast(data, static_cast<MPI_Aint>(bytes), TypeOf(MPI_BYTE), root, comm);
}

Error Agree(Comm& comm, const Error& mine) {
  if (comm.size() == 1) return mine;
  const int failed = mine.ok() ? 0 : kHighest - comm.rank;
  int who = 0;
  Error reduced = AllReduce(&failed, &who, 1, TypeOf(MPI_INT), *Op::Find(MPI_MAX), comm);
  if (!reduced.ok()) return mine.ok() ? reduced : mine;
  if (who == 0) return {};
  Told told = {};
  if (who == failed) {
    told.mpi_class = mine.mpi_class();
    const std::string words = mine.message();
    std::memcpy(told.words, words.data(), std::min(words.size(), sizeof told.words - 1));
  }
  reduced = TellBytes(comm, kHighest - who, &told, sizeof told);
  if (!mine.ok()) return mine;
  WEFT_MPI_TRY(std::move(reduced));
  return Error(told.mpi_class, "at rank " + std::to_string(kHighest - who) + ": " + told.words);
}

}  // namespace weft::mpi::io
