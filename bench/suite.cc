#include "bench/suite.h"

#include <utility>

#include "bench/statistics.h"

namespace weft::bench {
namespace {

std::vector<double> Map(const std::vector<Sample>& samples, const std::function<double(const Sample&)>& figure) {
  std::vector<double> figures;
  for (const Sample& sample : samples) figures.push_back(figure(sample));
  return figures;
}

}  // namespace

Suite::Suite(Effort effort, std::string address, bool self_check, bool pinned, bool has_same_host)
    : effort_(effort), address_(std::move(address)), raw_("raw", pinned, {}), over_sctp_(self_check ? "raw" : "verbs", pinned, {"WEFT_LLP=sctp"}) {
  const std::string kind = self_check ? "raw" : "verbs";
  for (const char* crc : {"auto", "off", "on"}) {
    std::vector<std::string> settings{std::string("WEFT_MPA_CRC=") + crc};
    if (has_same_host) settings.emplace_back("WEFT_SAME_HOST=off");
    weft_.emplace_back(kind, pinned, std::move(settings));
  }
}

void Suite::Register(const std::string& name, int iterations, std::function<void(benchmark::State&)> body) {
  const auto guarded = [this, name, body](benchmark::State& state) {
    try {
      body(state);
    } catch (const Failure& failure) {
      state.SkipWithError(failure.what());
      report_.AddFailure(name, failure.what());
      EndProcesses();
    }
  };
  benchmark::RegisterBenchmark(name.c_str(), guarded)
      ->Iterations(iterations)
      ->UseManualTime()
      ->Unit(benchmark::kMicrosecond);
}

std::string Suite::VerbsLibrary() {
  try {
    return weft(Crc::kAuto).VerbsLibrary();
  } catch (const Failure& failure) {
    return failure.what();
  }
}

void Suite::EndProcesses() {
  raw_.Reset();
  for (WorkerPair& pair : weft_) pair.Reset();
  over_sctp_.Reset();
}

Pairs RunPairs(benchmark::State& state, Suite& suite, Crc crc, const Measurement& measurement) {
  return RunPairs(state, suite.raw(), suite.weft(crc), measurement);
}

Pairs RunPairs(benchmark::State& state, WorkerPair& raw, WorkerPair& weft, const Measurement& measurement) {
  raw.Open(measurement.initiator, measurement.responder);
  weft.Open(measurement.initiator, measurement.responder);
  raw.Run(measurement.raw);
  weft.Run(measurement.weft);
  Pairs pairs;
  for (auto _ : state) {
    pairs.raw.push_back(raw.Run(measurement.raw));
    const Sample& sample = pairs.weft.emplace_back(weft.Run(measurement.weft));
    state.SetIterationTime(measurement.weft.ping_pong ? sample.median : sample.elapsed);
  }
  raw.Close();
  weft.Close();
  return pairs;
}

Row Compare(benchmark::State& state, const Pairs& pairs, const std::function<double(const Sample&)>& figure,
            const std::string& name, const std::string& unit) {
  const std::vector<double> raw = Map(pairs.raw, figure), weft = Map(pairs.weft, figure);
  const Row row = {.name = name, .raw = Median(raw), .weft = Median(weft), .ratio = MedianRatio(weft, raw), .note = ""};
  state.counters["raw_" + unit] = row.raw;
  state.counters["weft_" + unit] = row.weft;
  state.counters["ratio_" + unit] = row.ratio;
  return row;
}

std::string SizeName(int64_t bytes) {
  if (bytes >= 1 << 20) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= 1 << 10) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace weft::bench
