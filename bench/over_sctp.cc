#include <algorithm>

#include "bench/statistics.h"
#include "bench/suite.h"

namespace weft::bench {
namespace {

constexpr char kSection[] = "Weft over TCP | over SCTP";
constexpr double kMostLatency = 3, kLeastBandwidth = 0.25;  // times TCP's

// Both ends poll, as in the row of the same name over TCP.
void RunSctpLatency(benchmark::State& state, Suite& suite, int64_t bytes) {
  Measurement measurement;
  measurement.initiator = measurement.responder = suite.MakeShape();
  measurement.raw = {.ping_pong = true, .operation = Operation::kSend, .bytes = bytes};
  measurement.raw.count = std::max<int64_t>(10, static_cast<int64_t>(suite.effort().seconds / 20e-6));
  measurement.raw.warm_up = measurement.raw.count / 10 + 1;
  measurement.weft = measurement.raw;
  const Pairs pairs = RunPairs(state, suite.weft(Crc::kAuto), suite.over_sctp(), measurement);
  const Row row = Compare(
      state, pairs, [](const Sample& sample) { return 1e6 * sample.median; }, "half round trip, us: " + SizeName(bytes), "us");
  suite.report().Add(kSection, row);
  if (bytes == 64) suite.report().Add(Target{"64 B ping-pong polling over SCTP", row.ratio, "x TCP", /*at_most=*/true, kMostLatency});
}

void RunBandwidth(benchmark::State& state, Suite& suite, int64_t bytes) {
  Measurement measurement;
  measurement.initiator = measurement.responder = suite.MakeShape();
  measurement.responder.events = true;
  measurement.raw = {.operation = Operation::kWrite,
                     .responder_wait = Wait::kEvent,
                     .bytes = bytes,
                     .count = std::max<int64_t>(4, static_cast<int64_t>(suite.effort().seconds * 2e9) / bytes)};
  measurement.weft = measurement.raw;
  const Pairs pairs = RunPairs(state, suite.weft(Crc::kAuto), suite.over_sctp(), measurement);
  const double total = static_cast<double>(bytes * measurement.weft.count);
  const Row row = Compare(
      state, pairs, [total](const Sample& sample) { return total / sample.elapsed / 1e9; }, "Write, GB/s: " + SizeName(bytes), "GB_s");
  suite.report().Add(kSection, row);
  if (bytes == 65536) suite.report().Add(Target{"64 KiB Write bandwidth over SCTP", row.ratio, "x TCP", /*at_most=*/false, kLeastBandwidth});
}

}  // namespace

void RegisterOverSctp(Suite& suite) {
  const int repetitions = suite.effort().target_repetitions;
  for (const int64_t bytes : {64, 4096}) {
    suite.Register("sctp_half_round_trip/" + std::to_string(bytes), repetitions,
                   [&suite, bytes](benchmark::State& state) { RunSctpLatency(state, suite, bytes); });
  }
  for (const int64_t bytes : {4096, 65536, 1048576}) {
    suite.Register("sctp_bandwidth/Write/" + std::to_string(bytes), repetitions,
                   [&suite, bytes](benchmark::State& state) { RunBandwidth(state, suite, bytes); });
  }
}

}  // namespace weft::bench
