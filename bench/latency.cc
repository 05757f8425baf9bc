#include <algorithm>
#include <cstdio>

#include "bench/statistics.h"
#include "bench/suite.h"

namespace weft::bench {
namespace {

struct Kind {
  const char* name;
  const char* section;
  Wait weft;
  Wait raw;
  Operation operation;
  const char* target;  // at 64 B: at most kTargetRatio times raw; nullptr: none
};

constexpr double kTargetRatio = 1.15;
constexpr int64_t kTargetLatencySize = 64;

constexpr Kind kKinds[] = {
    {"polling", "Half round trip, us: both poll", Wait::kSpin, Wait::kSpin, Operation::kSend, "64 B ping-pong polling"},
    {"memory", "both watch memory; raw blocks", Wait::kMemory, Wait::kEvent, Operation::kWrite,
     "64 B ping-pong watching memory, raw blocking"},
    {"event", "both sleep until an event", Wait::kEvent, Wait::kEvent, Operation::kSend, nullptr},
};

int64_t RoundTrips(double seconds, int64_t bytes) {
  const double half_round_trip = 10e-6 + static_cast<double>(bytes) / 2e9;
  return std::max<int64_t>(10, static_cast<int64_t>(seconds / 2 / half_round_trip));
}

std::string Tail(const Pairs& pairs) {
  const auto median_p99 = [](const std::vector<Sample>& samples) {
    std::vector<double> tails;
    for (const Sample& sample : samples) tails.push_back(1e6 * sample.p99);
    return Median(tails);
  };
  char text[80];
  std::snprintf(text, sizeof text, "p99 %.1f / %.1f", median_p99(pairs.raw), median_p99(pairs.weft));
  return text;
}

void RunLatency(benchmark::State& state, Suite& suite, const Kind& kind, int64_t bytes) {
  Measurement measurement;
  measurement.initiator = suite.MakeShape();
  measurement.initiator.events = kind.weft == Wait::kEvent;
  measurement.responder = measurement.initiator;
  measurement.raw = {.ping_pong = true, .operation = kind.operation, .wait = kind.raw, .bytes = bytes};
  measurement.raw.count = RoundTrips(suite.effort().seconds, bytes);
  measurement.raw.warm_up = measurement.raw.count / 10 + 1;
  measurement.weft = measurement.raw;
  measurement.weft.wait = kind.weft;
  const Pairs pairs = RunPairs(state, suite, Crc::kAuto, measurement);
  Row row = Compare(
      state, pairs, [](const Sample& sample) { return 1e6 * sample.median; }, SizeName(bytes), "us");
  row.note = Tail(pairs);
  suite.report().Add(kind.section, row);
  if (bytes == kTargetLatencySize && kind.target != nullptr) {
    suite.report().Add(Target{kind.target, row.ratio, "x raw", /*at_most=*/true, kTargetRatio});
  }
}

}  // namespace

void RegisterLatency(Suite& suite) {
  const std::vector<int64_t> sizes = suite.effort().every_size
                                         ? std::vector<int64_t>{1, 64, 512, 4096, 32768, 262144, 1048576}
                                         : std::vector<int64_t>{1, 64, 4096, 1048576};
  for (const Kind& kind : kKinds) {
    for (const int64_t bytes : sizes) {
      const Effort& effort = suite.effort();
      suite.Register(std::string("half_round_trip/") + kind.name + "/" + std::to_string(bytes),
                     bytes == kTargetLatencySize ? effort.target_repetitions : effort.repetitions,
                     [&suite, &kind, bytes](benchmark::State& state) { RunLatency(state, suite, kind, bytes); });
    }
  }
}

}  // namespace weft::bench
