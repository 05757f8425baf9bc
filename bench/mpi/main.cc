// mpi_bench SUITE [--quick]: measures the MPI library that it runs on, with 2 ranks or (collective, by_vector, files, growth) with all; a line per figure:
// name, size in bytes, value (microseconds, or messages or bytes per second).
#include <cstring>
#include <string_view>

#include "measure.h"

namespace mpi_bench {
int g_rank, g_size;
bool g_quick;
}  // namespace mpi_bench

int main(int argc, char** argv) {
  using namespace mpi_bench;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  g_quick = argc > 2 && std::strcmp(argv[2], "--quick") == 0;
  const std::string_view suite = argc > 1 ? argv[1] : "";
  if (suite == "pair" && g_size == 2) {
    PingPong();
    Stream();
    Partitioned();
    Fences();
    FencesOfCreated();
    Flushes();
    Locks();
    Rates();
    PassiveTarget();
    Mixed();
  } else if (suite == "messages" && g_size == 2) {
    PingPong();
    Stream();
  } else if (suite == "one_sided" && g_size == 2) {
    Fences();
    FencesOfCreated();
    FencesByHand();
    Flushes();
    Locks();
    Rates();
    PassiveTarget();
  } else if (suite == "partitioned" && g_size == 2) {
    Partitioned();
  } else if (suite == "bandwidth" && g_size == 2) {
    BandwidthBySize();
  } else if (suite == "windows" && g_size == 2) {
    FencesBySize();
    Mixed();
  } else if (suite == "collective") {
    Collectives();
  } else if (suite == "by_vector") {
    CollectivesByVector();
  } else if (suite == "files") {
    Files();
  } else if (suite == "growth") {
    Growth();
  } else {
    if (g_rank == 0) {
      std::fprintf(stderr, "usage: mpiexec -n 2 mpi_bench pair|messages|one_sided|partitioned|bandwidth|windows [--quick]; mpiexec -n N mpi_bench collective|by_vector|files|growth [--quick]\n");
    }
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  MPI_Finalize();
  return 0;
}
