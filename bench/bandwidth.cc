#include <algorithm>
#include <cstdio>

#include "bench/statistics.h"
#include "bench/suite.h"

namespace weft::bench {
namespace {

struct OperationName {
  Operation operation;
  const char* name;
};

constexpr OperationName kOperations[] = {
    {Operation::kWrite, "Write"}, {Operation::kRead, "Read"}, {Operation::kSend, "Send"}};

struct Stream {
  OperationName operation;
  int64_t bytes;
  bool crc;
  Wait wait;  // of the initiator
  Wait responder_wait;

  std::string Name() const {
    return std::string(operation.name) + " " + SizeName(bytes) + (crc ? ", CRC" : "") +
           (Passive() && responder_wait == Wait::kSpin ? ", target polls" : "");
  }
  // The responder has nothing to do but at the end.
  bool Passive() const { return operation.operation != Operation::kSend; }
};

constexpr int64_t kTargetBandwidthSize = 65536;
constexpr double kGib = 1 << 30;

double CpuPerGib(const Sample& sample, const Job& job) {
  return sample.cpu * kGib / (static_cast<double>(job.bytes) * static_cast<double>(job.count));
}

Measurement MakeMeasurement(const Suite& suite, const Stream& stream) {
  Measurement measurement;
  measurement.initiator = suite.MakeShape();
  measurement.initiator.events = stream.wait == Wait::kEvent;
  measurement.responder = suite.MakeShape();
  measurement.responder.events = stream.responder_wait == Wait::kEvent;
  measurement.raw = {.operation = stream.operation.operation,
                     .wait = stream.wait,
                     .responder_wait = stream.responder_wait,
                     .bytes = stream.bytes,
                     .count = std::max<int64_t>(4, static_cast<int64_t>(suite.effort().seconds * 4e9) / stream.bytes)};
  measurement.weft = measurement.raw;
  return measurement;
}

std::string CpuNote(benchmark::State& state, const Pairs& pairs, const Job& job) {
  const Row row = Compare(
      state, pairs, [&job](const Sample& s) { return CpuPerGib(s, job); }, "", "cpu_s_per_GiB");
  char text[80];
  std::snprintf(text, sizeof text, "CPU s/GiB %.2f / %.2f", row.raw, row.weft);
  return text;
}

void AddTarget(Suite& suite, const Stream& stream, double ratio) {
  const bool has_target = stream.operation.operation == Operation::kWrite && stream.bytes == kTargetBandwidthSize &&
                          stream.wait == Wait::kSpin && stream.responder_wait == Wait::kEvent;
  if (!has_target) return;
  suite.report().Add(Target{std::string("64 KiB Write bandwidth, CRC ") + (stream.crc ? "on" : "off"), ratio, "x raw",
                            /*at_most=*/false, stream.crc ? 0.75 : 0.95});
}

void RunStream(benchmark::State& state, Suite& suite, const Stream& stream) {
  const Measurement measurement = MakeMeasurement(suite, stream);
  const Pairs pairs = RunPairs(state, suite, stream.crc ? Crc::kOn : Crc::kOff, measurement);
  const Job& job = measurement.weft;
  const double bytes = static_cast<double>(job.bytes * job.count);
  Row row = Compare(
      state, pairs, [bytes](const Sample& s) { return bytes / s.elapsed / 1e9; }, stream.Name(), "GB_s");
  row.note = CpuNote(state, pairs, job);
  suite.report().Add("Bandwidth, GB/s", row);
  AddTarget(suite, stream, row.ratio);
}

// With both ends asleep while they wait, so that what is counted is work.
void RunCpu(benchmark::State& state, Suite& suite, const Stream& stream) {
  const Measurement measurement = MakeMeasurement(suite, stream);
  const Pairs pairs = RunPairs(state, suite, stream.crc ? Crc::kOn : Crc::kOff, measurement);
  const Job& job = measurement.weft;
  const auto cpu = [&job](const Sample& sample) { return CpuPerGib(sample, job); };
  suite.report().Add("CPU s/GiB, waiting asleep", Compare(state, pairs, cpu, stream.Name(), "cpu_s_per_GiB"));
}

struct Rate {
  const char* name;
  const char* row;
  int64_t list;
  bool inlined;
  bool target;
};

constexpr Rate kRates[] = {{"single", "one per ibv_post_send", 1, false, true},
                           {"inline", "one per call, inline", 1, true, false},
                           {"list", "32 per ibv_post_send", 32, false, false}};

void RunRate(benchmark::State& state, Suite& suite, const Rate& rate) {
  const Stream stream = {kOperations[0], 64, false, Wait::kSpin, Wait::kEvent};
  Measurement measurement = MakeMeasurement(suite, stream);
  for (Job* job : {&measurement.raw, &measurement.weft}) {
    job->count = std::max<int64_t>(64, static_cast<int64_t>(suite.effort().seconds * 4e6) / 32 * 32);
    job->list = rate.list;
    job->inlined = rate.inlined;
  }
  const Pairs pairs = RunPairs(state, suite, Crc::kAuto, measurement);
  const double millions = 1e-6 * static_cast<double>(measurement.weft.count);
  const auto figure = [millions](const Sample& sample) { return millions / sample.elapsed; };
  const Row row = Compare(state, pairs, figure, rate.row, "millions_s");
  suite.report().Add("64 B Writes, millions/s", row);
  if (rate.target) {
    suite.report().Add(Target{"64 B Writes from one QP", row.weft, " million/s", /*at_most=*/false, 1.5});
  }
}

void RegisterStream(Suite& suite, const Stream& stream, const std::string& group, auto run) {
  const std::string name = group + "/" + stream.operation.name + "/" + std::to_string(stream.bytes) +
                           (stream.crc ? "/crc_on" : "/crc_off") +
                           (stream.Passive() && stream.responder_wait == Wait::kSpin ? "/target_polls" : "");
  const Effort& effort = suite.effort();
  suite.Register(name, stream.bytes == kTargetBandwidthSize ? effort.target_repetitions : effort.repetitions,
                 [&suite, stream, run](benchmark::State& state) { run(state, suite, stream); });
}

}  // namespace

void RegisterBandwidth(Suite& suite) {
  for (const OperationName& operation : kOperations) {
    for (const bool crc : {false, true}) {
      for (const int64_t bytes : {int64_t{4096}, kTargetBandwidthSize, int64_t{1048576}}) {
        const Wait responder = operation.operation == Operation::kSend ? Wait::kSpin : Wait::kEvent;
        RegisterStream(suite, {operation, bytes, crc, Wait::kSpin, responder}, "bandwidth", RunStream);
        if (bytes == kTargetBandwidthSize && operation.operation == Operation::kWrite) {
          RegisterStream(suite, {operation, bytes, crc, Wait::kSpin, Wait::kSpin}, "bandwidth", RunStream);
        }
      }
    }
  }
  for (const OperationName& operation : kOperations) {
    for (const bool crc : {false, true}) {
      RegisterStream(suite, {operation, kTargetBandwidthSize, crc, Wait::kEvent, Wait::kEvent}, "cpu", RunCpu);
    }
  }
  for (const Rate& rate : kRates) {
    suite.Register(std::string("rate/") + rate.name, suite.effort().target_repetitions,
                   [&suite, &rate](benchmark::State& state) { RunRate(state, suite, rate); });
  }
}

}  // namespace weft::bench
