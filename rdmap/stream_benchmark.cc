// What RDMAP and DDP cost per message, with a host and a lower layer that cost next to nothing.
//   bazel run -c opt //rdmap:stream_benchmark
#include <benchmark/benchmark.h>

#include <array>
#include <cstdlib>

#include "ddp/header.h"
#include "llp/ulpdu.h"
#include "rdmap/host.h"
#include "rdmap/opcode.h"
#include "rdmap/stream.h"

namespace weft::rdmap {
namespace {

constexpr size_t kLength = 64;

class CheapHost final : public Host {
 public:
  CheapHost() {
    for (Request& request : ring_) {
      request.local = {&piece_, 1};
      request.length = kLength;
    }
  }
  void Post(Opcode opcode, unsigned count) {
    for (unsigned i = 0; i < count; ++i) ring_[(next_ + i) % ring_.size()].opcode = opcode;
    waiting_ = count;
  }

  Result<uint8_t*, AccessError> Resolve(ddp::STag, ddp::TaggedOffset offset, uint32_t, Access) override {
    return memory_.data() + (offset.value & 1023);
  }
  std::optional<ReceiveTarget> TakeReceive(uint64_t) override { return ReceiveTarget{{&piece_, 1}, kLength, kLength}; }
  void Received(const ReceivedSend& message) override { benchmark::DoNotOptimize(message); }
  std::optional<AccessError> Invalidate(ddp::STag) override { return std::nullopt; }
  Request* NextRequest() override { return waiting_ == 0 ? nullptr : &ring_[next_ % ring_.size()]; }
  void Started(Request&) override {
    ++next_;
    --waiting_;
  }
  void Sent(Request&) override {}
  void ReadDone(Request&) override {}

 private:
  std::array<uint8_t, 2048> memory_{};
  iovec piece_{memory_.data(), kLength};
  std::array<Request, 64> ring_;
  unsigned next_ = 0;
  unsigned waiting_ = 0;
};

class CheapWriter final : public llp::UlpduWriter {
 public:
  size_t max_ulpdu() const override { return 1440; }
  bool HasRoom(size_t, size_t) const override { return true; }
  void Append(ByteSpan header, std::span<const iovec> payload, bool) override {
    benchmark::DoNotOptimize(header.data());
    benchmark::DoNotOptimize(payload.data());
    appended_ += header.size() + kLength;
  }
  uint64_t appended() const override { return appended_; }

 private:
  uint64_t appended_ = 0;
};

void ReceiveWrite(benchmark::State& state) {
  CheapHost host;
  Stream stream({}, host);
  std::array<uint8_t, ddp::TaggedHeader::kLength + kLength> segment{};
  ddp::TaggedHeader{true, ControlByteOf(Opcode::kWrite), ddp::STag(7), ddp::TaggedOffset(64)}.Serialize(segment);
  const ByteSpan head = ByteSpan(segment).first(llp::kUlpduHeadLength);
  llp::UlpduPlan plan;
  for (auto _ : state) {
    if (!stream.Begin(segment.size(), head, &plan) || !stream.End()) std::abort();
    benchmark::DoNotOptimize(plan);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReceiveWrite);

void ReceiveSend(benchmark::State& state) {
  CheapHost host;
  Stream stream({}, host);
  std::array<uint8_t, ddp::UntaggedHeader::kLength + kLength> segment{};
  ddp::UntaggedHeader header;
  header.last = true;
  header.rsvd_ulp = ControlByteOf(Opcode::kSend);
  header.msn = ddp::Msn(1);
  const ByteSpan head = ByteSpan(segment).first(llp::kUlpduHeadLength);
  llp::UlpduPlan plan;
  for (auto _ : state) {
    header.Serialize(segment);
    header.msn = ddp::Msn(header.msn.value + 1);
    if (!stream.Begin(segment.size(), head, &plan) || !stream.End()) std::abort();
    benchmark::DoNotOptimize(plan);
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ReceiveSend);

// `range(0)` requests at each doorbell.
void TransmitRequests(benchmark::State& state, Opcode opcode) {
  CheapHost host;
  Stream stream({}, host);
  CheapWriter out;
  const auto burst = static_cast<unsigned>(state.range(0));
  for (auto _ : state) {
    host.Post(opcode, burst);
    stream.Transmit(out);
    stream.OnTransmitted(out.appended());
  }
  state.SetItemsProcessed(state.iterations() * burst);
}
BENCHMARK_CAPTURE(TransmitRequests, Write, Opcode::kWrite)->Arg(1)->Arg(32);
BENCHMARK_CAPTURE(TransmitRequests, Send, Opcode::kSend)->Arg(1)->Arg(32);

}  // namespace
}  // namespace weft::rdmap

BENCHMARK_MAIN();
