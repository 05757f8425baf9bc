#include <algorithm>

#include "bench/statistics.h"
#include "bench/suite.h"

namespace weft::bench {
namespace {

constexpr int64_t kIdleConnections = 10;

// Many QPs with queues of `depth` that are not used.
Shape ManyShape(const Suite& suite, int64_t connections, int64_t depth) {
  Shape shape = suite.MakeShape();
  shape.connections = connections;
  shape.send_depth = depth;
  shape.receive_depth = depth;
  shape.buffer = 4096;
  return shape;
}

void RunConnect(benchmark::State& state, Suite& suite) {
  const Shape shape = ManyShape(suite, suite.effort().connections, 16);
  WorkerPair& raw = suite.raw();
  WorkerPair& weft = suite.weft(Crc::kAuto);
  Pairs pairs;
  for (auto _ : state) {
    pairs.raw.push_back({.elapsed = raw.Open(shape, shape)});
    raw.Close();
    pairs.weft.push_back({.elapsed = weft.Open(shape, shape)});
    weft.Close();
    state.SetIterationTime(pairs.weft.back().elapsed);
  }
  const std::string name = std::to_string(shape.connections) + " connections";
  const Row row = Compare(
      state, pairs, [](const Sample& sample) { return sample.elapsed; }, name, "s");
  suite.report().Add("Time to connect, s", row);
  suite.report().Add(Target{"connecting " + std::to_string(shape.connections) + " QPs", row.weft, " s", true, 2});
}

// KiB that each end needs for a connected QP, the larger of both ends.
double KibPerQp(WorkerPair& pair, const Suite& suite, int64_t depth) {
  pair.Reset();
  // What a process needs once is not counted.
  const Shape one = ManyShape(suite, 1, depth), many = ManyShape(suite, suite.effort().connections, depth);
  pair.Open(one, one);
  pair.Close();
  const auto before = pair.Resident();
  pair.Open(many, many);
  const auto after = pair.Resident();
  pair.Close();
  const int64_t grown = std::max(after.first - before.first, after.second - before.second);
  return static_cast<double>(grown) / 1024 / static_cast<double>(many.connections);
}

void RunMemory(benchmark::State& state, Suite& suite, int64_t depth) {
  double raw = 0, weft = 0;
  for (auto _ : state) {
    raw = KibPerQp(suite.raw(), suite, depth);
    weft = KibPerQp(suite.weft(Crc::kAuto), suite, depth);
    state.SetIterationTime(1e-6);
  }
  state.counters["raw_KiB"] = raw;
  state.counters["weft_KiB"] = weft;
  const std::string name = "queues of " + std::to_string(depth);
  // The socket's memory is the kernel's, so there is no ratio to speak of.
  suite.report().Add("Memory per idle QP, KiB",
                     {.name = name, .raw = raw, .weft = weft, .ratio = 0, .note = "each end"});
  suite.report().Add(Target{"memory per idle QP, " + name, weft, " KiB", true, 64});
}

void RunIdle(benchmark::State& state, Suite& suite) {
  Shape shape = ManyShape(suite, kIdleConnections, 64);
  shape.events = true;
  const double seconds = suite.effort().idle_seconds;
  Pairs pairs;
  for (auto _ : state) {
    for (WorkerPair* pair : {&suite.raw(), &suite.weft(Crc::kAuto)}) {
      pair->Open(shape, shape);
      // The connections have been polled before they idle.
      pair->Run({.ping_pong = true, .wait = Wait::kSpin, .bytes = 64, .count = 1000});
      (pair == &suite.raw() ? pairs.raw : pairs.weft).push_back(pair->Idle(seconds));
      pair->Close();
    }
    state.SetIterationTime(seconds);
  }
  const auto milliseconds = [seconds](const std::vector<Sample>& samples) {
    return 1e3 * samples.front().cpu / seconds;
  };
  const double raw = milliseconds(pairs.raw), weft = milliseconds(pairs.weft);
  state.counters["raw_ms_per_s"] = raw;
  state.counters["weft_ms_per_s"] = weft;
  state.counters["weft_switches"] = static_cast<double>(pairs.weft.front().context_switches);
  const std::string name = std::to_string(kIdleConnections) + " connected QPs";
  suite.report().Add("Idle CPU, ms per second",
                     {.name = name, .raw = raw, .weft = weft, .ratio = 0, .note = "both ends"});
  suite.report().Add(Target{"idle CPU, " + name, weft, " ms/s", true, 1});
}

}  // namespace

void RegisterScale(Suite& suite) {
  suite.Register("connect/" + std::to_string(suite.effort().connections), std::min(suite.effort().repetitions, 3),
                 [&suite](benchmark::State& state) { RunConnect(state, suite); });
  for (const int64_t depth : {16, 128}) {
    suite.Register("memory/" + std::to_string(depth), 1,
                   [&suite, depth](benchmark::State& state) { RunMemory(state, suite, depth); });
  }
  suite.Register("idle/" + std::to_string(kIdleConnections), 1,
                 [&suite](benchmark::State& state) { RunIdle(state, suite); });
}

}  // namespace weft::bench
