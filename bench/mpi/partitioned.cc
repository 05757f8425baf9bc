#include "measure.h"

namespace mpi_bench {

#if MPI_VERSION >= 4
namespace {

constexpr int kPartitions = 16;

// Rounds of one request at each end, answered by an empty message; ready(p, request) makes partition p ready, in order.
template <typename Ready>
void Rounds(const char* name, int size, double guess_us, Ready ready) {
  std::vector<char> buffer(static_cast<size_t>(size) * kPartitions);
  MPI_Request request;
  if (g_rank == 0) {
    MPI_Psend_init(buffer.data(), kPartitions, size, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  } else {
    MPI_Precv_init(buffer.data(), kPartitions, size, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_INFO_NULL, &request);
  }
  const double us = Measure(guess_us, [&] {
    MPI_Start(&request);
    for (int p = 0; g_rank == 0 && p < kPartitions; p++) ready(p, request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    if (g_rank == 0) {
      MPI_Recv(nullptr, 0, MPI_BYTE, 1, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
      MPI_Send(nullptr, 0, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    }
  });
  MPI_Request_free(&request);
  Print(name, size, us);
}

void Compute(double us) {
  const double until = MPI_Wtime() + us * 1e-6;
  while (MPI_Wtime() < until) {
  }
}

}  // namespace

// Bytes are those of one of 16 partitions: made ready one by one, together, and each when 50 us have gone by in computing it.
void Partitioned() {
  const std::vector<int> sizes = g_quick ? std::vector<int>{8, 65536} : std::vector<int>{8, 1024, 16384, 65536, 262144};
  for (const int size : sizes) {
    const double guess = 100 + kPartitions * size / 1500.0;
    Rounds("partitioned", size, guess, [](int p, MPI_Request& request) { MPI_Pready(p, request); });
    Rounds("part_range", size, guess, [](int p, MPI_Request& request) {
      if (p == 0) MPI_Pready_range(0, kPartitions - 1, request);
    });
    Rounds("part_computed", size, guess + kPartitions * 50, [](int p, MPI_Request& request) {
      Compute(50);
      MPI_Pready(p, request);
    });
  }
}
#else
void Partitioned() {}
#endif

}  // namespace mpi_bench
