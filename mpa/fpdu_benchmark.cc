// Framing and unframing in memory: what MPA costs beside the copies of the kernel.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "mpa/fpdu_layout.h"
#include "mpa/fpdu_receiver.h"
#include "mpa/fpdu_sender.h"

namespace weft::mpa {
namespace {

constexpr size_t kHeaderLength = 14;  // a tagged DDP segment's

// Places payload one after another in a window, as RDMA Writes do.
class WindowSink final : public llp::UlpduSink {
 public:
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override {
    const size_t payload = length - kHeaderLength;
    if (at_ + payload > window_.size()) at_ = 0;
    piece_ = {window_.data() + at_, payload};
    at_ += payload;
    *plan = {kHeaderLength, {&piece_, 1}};
    benchmark::DoNotOptimize(head.data());
    return true;
  }
  bool End() override {
    ++count_;
    return true;
  }
  size_t count() const { return count_; }

 private:
  std::vector<uint8_t> window_ = std::vector<uint8_t>(256 * 1024);
  size_t at_ = 0;
  size_t count_ = 0;
  iovec piece_{};
};

std::vector<uint8_t> MakeStream(size_t payload, size_t count, bool crc, bool markers) {
  BufferPool pool;
  FpduSender sender({.crc = crc, .markers = markers}, pool);
  std::vector<uint8_t> header(kHeaderLength, 1), data(payload, 2), stream;
  const iovec piece = {data.data(), data.size()};
  for (size_t i = 0; i < count; ++i) {
    sender.Append(header, {&piece, 1}, false);
    for (const iovec& pending : sender.Pending()) {
      const uint8_t* from = static_cast<const uint8_t*>(pending.iov_base);
      stream.insert(stream.end(), from, from + pending.iov_len);
    }
    sender.Consume(sender.appended() - sender.consumed());
  }
  return stream;
}

// Includes a copy into the prepared memory, which is the kernel's work in truth.
void Receive(benchmark::State& state) {
  const size_t payload = static_cast<size_t>(state.range(0));
  const bool crc = state.range(1) & 1, markers = state.range(1) & 2;
  // With markers a stream can only be repeated at a whole number of intervals: 127 equal FPDUs make some.
  const std::vector<uint8_t> stream = MakeStream(payload, payload > 4096 ? 127 : 1270, crc, markers);
  if (markers && stream.size() % kMarkerInterval != 0) return state.SkipWithError("not a whole number of intervals");
  BufferPool pool;
  WindowSink sink;
  FpduReceiver receiver({.crc = crc, .markers = markers}, pool, sink);
  size_t at = 0, bytes = 0;
  for (auto _ : state) {
    size_t count = 0;
    for (const iovec& piece : receiver.PrepareRead()) {
      const size_t part = std::min(piece.iov_len, stream.size() - at);
      std::memcpy(piece.iov_base, stream.data() + at, part);
      at += part;
      count += part;
      if (at == stream.size()) {
        at = 0;
        break;
      }
    }
    bytes += count;
    if (!receiver.Commit(count)) return state.SkipWithError("stopped");
  }
  state.SetItemsProcessed(static_cast<int64_t>(sink.count()));
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}

void Send(benchmark::State& state) {
  const size_t payload = static_cast<size_t>(state.range(0));
  const bool crc = state.range(1) & 1, markers = state.range(1) & 2;
  BufferPool pool;
  FpduSender sender({.crc = crc, .markers = markers}, pool);
  std::vector<uint8_t> header(kHeaderLength, 1), data(payload, 2);
  const iovec piece = {data.data(), data.size()};
  size_t items = 0;
  for (auto _ : state) {
    while (sender.HasRoom(payload, 1)) {
      sender.Append(header, {&piece, 1}, false);
      ++items;
    }
    benchmark::DoNotOptimize(sender.Pending().data());
    benchmark::ClobberMemory();
    sender.Consume(sender.appended() - sender.consumed());
  }
  state.SetItemsProcessed(static_cast<int64_t>(items));
  state.SetBytesProcessed(static_cast<int64_t>(sender.consumed()));
}

void Modes(benchmark::internal::Benchmark* benchmark) {
  for (int mode : {0, 1, 3}) {
    for (int payload : {64, 1434, 64496}) benchmark->Args({payload, mode});
  }
  benchmark->ArgNames({"payload", "crc1_markers2"});
}
BENCHMARK(Receive)->Apply(Modes);
BENCHMARK(Send)->Apply(Modes);

}  // namespace
}  // namespace weft::mpa

BENCHMARK_MAIN();
