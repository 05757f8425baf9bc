#ifndef BENCH_SUITE_H_
#define BENCH_SUITE_H_

#include <benchmark/benchmark.h>

#include <functional>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/worker_pair.h"

namespace weft::bench {

// How much is measured.
struct Effort {
  int repetitions = 9;          // pairs of raw TCP and Weft
  int target_repetitions = 21;  // for measurements with a target
  double seconds = 0.03;        // approximate duration of a sample
  double idle_seconds = 1;
  int64_t connections = 1000;
  bool every_size = true;
};

enum class Crc : uint8_t { kAuto, kOff, kOn };

// The measured processes and the results. Outlives the registered benchmarks, which run one after another.
class Suite {
 public:
  // `self_check`: raw TCP takes the place of Weft. All ratios are then 1, except for noise. `pinned`: see WorkerPair. `has_same_host`: this Weft knows
  // WEFT_SAME_HOST, so that it has to be told to go over TCP.
  Suite(Effort effort, std::string address, bool self_check, bool pinned, bool has_same_host);

  const Effort& effort() const { return effort_; }
  Shape MakeShape() const {
    Shape shape;
    shape.address = address_;
    return shape;
  }
  WorkerPair& raw() { return raw_; }
  WorkerPair& weft(Crc crc) { return weft_[static_cast<size_t>(crc)]; }
  WorkerPair& over_sctp() { return over_sctp_; }
  Report& report() { return report_; }
  // The file of the measured library, or why it is unknown.
  std::string VerbsLibrary();
  void EndProcesses();

  // Registers a benchmark of `iterations`. If `body` throws Failure, the benchmark is reported as not measured, and all
  // processes are restarted.
  void Register(const std::string& name, int iterations, std::function<void(benchmark::State&)> body);

 private:
  const Effort effort_;
  const std::string address_;
  WorkerPair raw_;
  std::vector<WorkerPair> weft_;
  WorkerPair over_sctp_;
  Report report_;
};

// Samples of raw TCP and of Weft, made in turns.
struct Pairs {
  std::vector<Sample> raw, weft;
};

// What to run, and over which connection.
struct Measurement {
  Shape initiator, responder;
  Job raw, weft;
};

// Opens both connections, runs a warm-up, then one pair per iteration of `state`; closes.
Pairs RunPairs(benchmark::State& state, Suite& suite, Crc crc, const Measurement& measurement);

// The same for any two pairs of workers.
Pairs RunPairs(benchmark::State& state, WorkerPair& raw, WorkerPair& weft, const Measurement& measurement);

// Row and counters for `pairs`; `figure` selects the value of a sample.
Row Compare(benchmark::State& state, const Pairs& pairs, const std::function<double(const Sample&)>& figure,
            const std::string& name, const std::string& unit);

// "64 B", "4 KiB", "1 MiB".
std::string SizeName(int64_t bytes);

void RegisterLatency(Suite& suite);    // half round trips
void RegisterBandwidth(Suite& suite);  // one way: bytes, CPU time and messages per second
void RegisterOverSctp(Suite& suite);   // the first two, of Weft over SCTP next to Weft over TCP
void RegisterScale(Suite& suite);      // connecting, memory and idling

}  // namespace weft::bench

#endif  // BENCH_SUITE_H_
