#include "measure.h"

namespace mpi_bench {
namespace {

// Data that were not written before each call are in the caches of all, which favours whoever reads them where they lie.
constexpr int kLeastNew = 65536;

struct Buffers {
  int count;
  std::vector<double> in, out, all_in, all_out;

  explicit Buffers(int bytes)
      : count(bytes / 8), in(count), out(count), all_in(static_cast<size_t>(count) * g_size), all_out(static_cast<size_t>(count) * g_size) {}
  void Write(double value) {
    std::fill(in.begin(), in.end(), value);
    std::fill(all_in.begin(), all_in.end(), value);
  }
  void Broadcast() { MPI_Bcast(in.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
  void AllReduce() { MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); }
  void AllToAll() { MPI_Alltoall(all_in.data(), count, MPI_DOUBLE, all_out.data(), count, MPI_DOUBLE, MPI_COMM_WORLD); }
  void AllGather() { MPI_Allgather(in.data(), count, MPI_DOUBLE, all_out.data(), count, MPI_DOUBLE, MPI_COMM_WORLD); }
  void Gather() { MPI_Gather(in.data(), count, MPI_DOUBLE, all_out.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
  void Scatter() { MPI_Scatter(all_in.data(), count, MPI_DOUBLE, out.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD); }
};

struct Case {
  const char* name;
  const char* name_new;  // with data that were written just before; null: not measured
  void (Buffers::*call)();
  bool leaves_early;  // a rank may be through before others have begun: a barrier keeps them together, and is in the figure
  double cost;        // a guess, in broadcasts
};
constexpr Case kCases[] = {{"bcast", "bcast_new", &Buffers::Broadcast, true, 1},    {"allreduce", nullptr, &Buffers::AllReduce, false, 1},
                           {"alltoall", "alltoall_new", &Buffers::AllToAll, false, 2}, {"allgather", "allgather_new", &Buffers::AllGather, false, 2},
                           {"gather", "gather_new", &Buffers::Gather, true, 1},      {"scatter", "scatter_new", &Buffers::Scatter, true, 1}};

// As Measure, of `once()` after each `write()`, whose time does not count; a barrier at the end does.
template <typename Write, typename Once>
double MeasureNew(double guess_us, Write write, Once once) {
  const int per_batch = std::max(5, static_cast<int>((g_quick ? 2000 : 8000) / guess_us));
  std::vector<double> batches;
  for (int batch = -1; batch < (g_quick ? 3 : 9); batch++) {
    double seconds = 0;
    for (int i = 0; i < per_batch; i++) {
      write(i);
      MPI_Barrier(MPI_COMM_WORLD);
      const double start = MPI_Wtime();
      once();
      MPI_Barrier(MPI_COMM_WORLD);
      seconds += MPI_Wtime() - start;
    }
    if (batch >= 0) batches.push_back(seconds * 1e6 / per_batch);
  }
  return Median(batches);
}

}  // namespace

void Collectives() {
  Print("barrier", 0, Measure(100, [] { MPI_Barrier(MPI_COMM_WORLD); }));
  for (const int size : g_quick ? std::vector<int>{8, 4096, 65536, 1048576} : std::vector<int>{8, 1024, 4096, 16384, 65536, 1048576}) {
    Buffers buffers(size);
    for (const Case& one : kCases) {
      const double guess = (150 + size / 200.0) * one.cost;
      Print(one.name, size, Measure(guess, [&] {
              (buffers.*one.call)();
              if (one.leaves_early) MPI_Barrier(MPI_COMM_WORLD);
            }));
      if (size < kLeastNew || one.name_new == nullptr) continue;
      Print(one.name_new, size, MeasureNew(guess, [&](int i) { buffers.Write(i); }, [&] { (buffers.*one.call)(); }));
    }
  }
}

// Each collective with a longest vector of so many bytes: that of all ranks' blocks, which have at least 8, where it has blocks.
void CollectivesByVector() {
  const double seconds = g_quick ? 0.05 : 0.3;
  Print("barrier", 0, MeasureFew(seconds, [] { MPI_Barrier(MPI_COMM_WORLD); }));
  for (const int size : g_quick ? std::vector<int>{8, 65536} : std::vector<int>{8, 4096, 65536, 1 << 20, 16 << 20}) {
    const int count = size / 8, block = std::max(1, count / g_size);
    std::vector<double> in(static_cast<size_t>(std::max(count, g_size)), 1), out(in.size());
    const auto row = [&](const char* name, auto call) {
      Print(name, size, MeasureFew(seconds, [&] {
              call();
              MPI_Barrier(MPI_COMM_WORLD);
            }));
      std::fflush(stdout);  // a library may be too slow for all of it
    };
    row("bcast", [&] { MPI_Bcast(in.data(), count, MPI_DOUBLE, 0, MPI_COMM_WORLD); });
    row("reduce", [&] { MPI_Reduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD); });
    row("allreduce", [&] { MPI_Allreduce(in.data(), out.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
    row("allgather", [&] { MPI_Allgather(in.data(), block, MPI_DOUBLE, out.data(), block, MPI_DOUBLE, MPI_COMM_WORLD); });
    row("alltoall", [&] { MPI_Alltoall(in.data(), block, MPI_DOUBLE, out.data(), block, MPI_DOUBLE, MPI_COMM_WORLD); });
    row("gather", [&] { MPI_Gather(in.data(), block, MPI_DOUBLE, out.data(), block, MPI_DOUBLE, 0, MPI_COMM_WORLD); });
    row("reduce_scatter", [&] { MPI_Reduce_scatter_block(in.data(), out.data(), block, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); });
  }
}

}  // namespace mpi_bench
