// Weft next to raw TCP. Beyond Google Benchmark's own options:
//   --quick          fewer repetitions and sizes: under 40 s
//   --smoke          hardly anything: shows that every benchmark runs
//   --self-check     raw TCP in Weft's place: shows the noise
//   --seconds=S      about how long a sample takes: longer for a profiler
//   --repetitions=N  samples of each row (default 9, and 21 of rows with a target)
//   --address=ADDR   local address to connect over (default 127.0.0.1)
//   --no-same-host   for a Weft so old that it does not know WEFT_SAME_HOST
//   --unpinned       the scheduler places both ends; otherwise each has one half of the CPUs to itself
// Which verbs library is measured is the loader's choice: see LD_LIBRARY_PATH in the script `run`.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "bench/other_load.h"
#include "bench/own_process.h"
#include "bench/suite.h"
#include "bench/worker.h"

namespace weft::bench {
namespace {

struct Options {
  Effort effort;
  std::string address = "127.0.0.1";
  bool self_check = false;
  bool pinned = true, has_same_host = true;
  std::string worker;
  int half = -1;
  int control_fd = -1;
};

constexpr Effort kQuick = {.repetitions = 3, .target_repetitions = 7, .seconds = 0.02, .every_size = false};
constexpr Effort kSmoke = {.repetitions = 1,
                           .target_repetitions = 1,
                           .seconds = 0.0005,
                           .idle_seconds = 0.05,
                           .connections = 20,
                           .every_size = true};

// Takes our own options out of argv.
Options ParseOptions(int* argc, char** argv) {
  Options options;
  int kept = 1;
  for (int i = 1; i < *argc; ++i) {
    const std::string_view word = argv[i];
    const auto value = [word](std::string_view name) { return std::string(word.substr(name.size())); };
    if (word == "--quick") {
      options.effort = kQuick;
    } else if (word == "--smoke") {
      options.effort = kSmoke;
    } else if (word == "--self-check") {
      options.self_check = true;
    } else if (word == "--unpinned") {
      options.pinned = false;
    } else if (word == "--no-same-host") {
      options.has_same_host = false;
    } else if (word.starts_with("--half=")) {
      options.half = std::atoi(value("--half=").c_str());
    } else if (word.starts_with("--seconds=")) {
      options.effort.seconds = std::atof(value("--seconds=").c_str());
    } else if (word.starts_with("--repetitions=")) {
      const int repetitions = std::max(1, std::atoi(value("--repetitions=").c_str()));
      options.effort.repetitions = options.effort.target_repetitions = repetitions;
    } else if (word.starts_with("--address=")) {
      options.address = value("--address=");
    } else if (word.starts_with("--worker=")) {
      options.worker = value("--worker=");
    } else if (word.starts_with("--control-fd=")) {
      options.control_fd = std::atoi(value("--control-fd=").c_str());
    } else {
      argv[kept++] = argv[i];
    }
  }
  *argc = kept;
  return options;
}

// More than this many CPUs taken by other programs spoil the figures.
constexpr double kQuiet = 0.1;

std::string Heading(const std::string& library, double others) {
  char text[640];
  std::snprintf(
      text, sizeof text,
      "\nWeft next to raw TCP: two processes, medians of pairs measured in turns, ratio = median of the pairs' "
      "ratios.\nVerbs library %s\n%u CPUs, of which other programs kept %.2f busy meanwhile%s\n",
      library.c_str(), std::thread::hardware_concurrency(), others,
      others > kQuiet ? ": NOT QUIET, do not trust the ratios" : "");
  return text;
}

int Main(int argc, char** argv) {
  const Options options = ParseOptions(&argc, argv);
  if (!options.worker.empty()) {
    if (options.half >= 0) UseHalfOfTheCpus(options.half);
    return RunWorker(options.worker, options.control_fd);
  }
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  const OtherLoad other_load;
  Suite suite(options.effort, options.address, options.self_check, options.pinned, options.has_same_host);
  RegisterLatency(suite);
  RegisterBandwidth(suite);
  RegisterOverSctp(suite);
  RegisterScale(suite);
  benchmark::RunSpecifiedBenchmarks();
  const std::string library = suite.VerbsLibrary();
  suite.EndProcesses();
  std::fputs((Heading(library, other_load.Cpus()) + suite.report().ToString()).c_str(), stdout);
  return suite.report().failed() ? 1 : 0;
}

}  // namespace
}  // namespace weft::bench

int main(int argc, char** argv) { return weft::bench::Main(argc, argv); }
