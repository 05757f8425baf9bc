#include <unistd.h>

#include <cstring>

#include "measure.h"

namespace mpi_bench {
namespace {

constexpr double kSecondsEach = 0.4;

// Memory of this process in KiB, what it shares divided among those that have it (Linux: Pss).
double Memory() {
  double kib = 0;
  char line[256];
  std::FILE* file = std::fopen("/proc/self/smaps_rollup", "r");
  if (file == nullptr) return 0;
  while (std::fgets(line, sizeof line, file) != nullptr) {
    if (std::strncmp(line, "Pss:", 4) == 0) std::sscanf(line + 4, "%lf", &kib);
  }
  std::fclose(file);
  return kib;
}

void PrintMemory(const char* name) {
  MPI_Barrier(MPI_COMM_WORLD);  // all have what they need
  double mine = Memory(), all = 0;
  MPI_Reduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  Print(name, g_size, all / g_size);
}

}  // namespace

void Growth() {
  MPI_Barrier(MPI_COMM_WORLD);
  Print("started", g_size, 1);  // its time is what counts
  std::fflush(stdout);
  PrintMemory("memory");
  std::vector<long> out(static_cast<size_t>(g_size)), in(static_cast<size_t>(g_size));
  Print("barrier", g_size, MeasureFew(kSecondsEach, [] { MPI_Barrier(MPI_COMM_WORLD); }));
  Print("alltoall", g_size, MeasureFew(kSecondsEach, [&] { MPI_Alltoall(out.data(), 1, MPI_LONG, in.data(), 1, MPI_LONG, MPI_COMM_WORLD); }));
  // Each pair of ranks exchanges a message, so that all that a library has for a pair is there.
  std::vector<MPI_Request> requests(2 * static_cast<size_t>(g_size));
  for (int i = 0; i < g_size; i++) MPI_Irecv(&in[static_cast<size_t>(i)], 1, MPI_LONG, i, 0, MPI_COMM_WORLD, &requests[static_cast<size_t>(i)]);
  for (int i = 0; i < g_size; i++) MPI_Isend(&out[static_cast<size_t>(i)], 1, MPI_LONG, i, 0, MPI_COMM_WORLD, &requests[static_cast<size_t>(g_size + i)]);
  MPI_Waitall(2 * g_size, requests.data(), MPI_STATUSES_IGNORE);
  PrintMemory("memory_all_pairs");
}

}  // namespace mpi_bench
