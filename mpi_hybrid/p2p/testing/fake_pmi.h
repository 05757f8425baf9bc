#ifndef MPI_HYBRID_P2P_TESTING_FAKE_PMI_H_
#define MPI_HYBRID_P2P_TESTING_FAKE_PMI_H_

#include <memory>
#include <string>

#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/core/testing/fake_pmi.h"
#include "mpi_hybrid/p2p/greeting/greeting.h"

namespace weft::mpi::testing {

inline constexpr char kJobSecret[] = "00112233445566778899aabbccddeeff";

inline Bond LoopbackBond() { return Bond::Of(*JobSecret::FromHex(kJobSecret)); }
inline ProcessName LoopbackName(int rank) { return {.job = LoopbackBond().id, .rank = rank}; }
// The Hello of one rank for another. The caller must know the secret to write it.
inline Hello LoopbackHello(int from, int to) {
  return {.from = LoopbackName(from), .to = LoopbackName(to), .bond = LoopbackBond().id, .window = 1000};
}

// A process of a job over loopback. `space` must outlive it.
inline void FillLoopbackJob(Job& job, int rank, int size, PmiSpace& space) {
  job.rank = rank;
  job.size = size;
  job.hosts = {"127.0.0.1"};
  job.processes.Start(*JobSecret::FromHex(kJobSecret), rank, size);
  job.pmi = std::make_unique<FakePmi>(space, rank, size);
}

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_FAKE_PMI_H_
