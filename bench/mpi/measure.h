#ifndef BENCH_MPI_MEASURE_H_
#define BENCH_MPI_MEASURE_H_

#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <vector>

// The common parts of the benchmarks. Plain MPI, so that the same source is built for each library.
namespace mpi_bench {

extern int g_rank, g_size;
extern bool g_quick;

// One line of the program's output, at rank 0:  name size value.  Times are in microseconds, rates per second.
inline void Print(const char* name, int size, double value) {
  if (g_rank == 0) std::printf("%s %d %.4f\n", name, size, value);
}

inline double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

// Returns the median of the microseconds per call of `once()`, over 9 batches (3 when quick) after one batch to warm
// up. A batch takes about 8 ms (2 ms when quick); `guess_us` is the expected time of a call. All ranks of the world
// must call it with the same guess.
template <typename Once>
double Measure(double guess_us, Once once) {
  const int per_batch = std::max(5, static_cast<int>((g_quick ? 2000 : 8000) / guess_us));
  std::vector<double> batches;
  for (int batch = -1; batch < (g_quick ? 3 : 9); batch++) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double start = MPI_Wtime();
    for (int i = 0; i < per_batch; i++) once();
    const double us = (MPI_Wtime() - start) * 1e6 / per_batch;
    if (batch >= 0) batches.push_back(us);
  }
  return Median(batches);
}

// The microseconds of a call, of as many as go into `seconds`; at least 2, at most 1,000. For calls whose time is hard to guess.
template <typename Once>
double MeasureFew(double seconds, Once once) {
  once();
  MPI_Barrier(MPI_COMM_WORLD);
  double start = MPI_Wtime();
  once();
  int times = static_cast<int>(std::clamp(seconds / (MPI_Wtime() - start), 2., 1000.));
  MPI_Bcast(&times, 1, MPI_INT, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  start = MPI_Wtime();
  for (int i = 0; i < times; i++) once();
  return (MPI_Wtime() - start) * 1e6 / times;
}

// Two ranks.
void PingPong();
void Stream();
void Partitioned();
void Fences();
void FencesOfCreated();
void FencesByHand();
void Flushes();
void Locks();
void Rates();
void PassiveTarget();
void Mixed();
void BandwidthBySize();
void FencesBySize();
// All ranks.
void Collectives();
void CollectivesByVector();
void Files();
void Growth();

}  // namespace mpi_bench

#endif  // BENCH_MPI_MEASURE_H_
