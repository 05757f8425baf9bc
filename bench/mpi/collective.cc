#include "measure.h"

namespace mpi_bench {

void Collectives() {
  Print("barrier", 0, Measure(100, [] { MPI_Barrier(MPI_COMM_WORLD); }));
  for (const int size : g_quick ? std::vector<int>{8, 4096, 65536, 1048576} : std::vector<int>{8, 1024, 4096, 16384, 65536, 1048576}) {
    const int count = size / 8;
    std::vector<double> in(count), out(count), all_in(static_cast<size_t>(count) * g_size), all_out(static_cast<size_t>(count) * g_size);
    const double guess = 150 + size / 200.0;
    // A barrier keeps the ranks of a broadcast together; both are in the figure.
    Print("bcast", size, Measure(guess, [&] {
            MPI_Bcast(in.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
          }));
    Print("allreduce", size, Measure(guess, [&] { MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }));
    Print("alltoall", size, Measure(guess * 2, [&] {
            MPI_Alltoall(all_in.data(), count, MPI_DOUBLE, all_out.data(), count, MPI_DOUBLE, MPI_COMM_WORLD);
          }));
  }
}

}  // namespace mpi_bench
