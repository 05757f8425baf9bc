#include <benchmark/benchmark.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c_kernels.h"

namespace weft {
namespace {

void Extend(benchmark::State& state, const crc32c::Kernel* kernel) {
  const size_t length = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> bytes(length, 0x5a);
  uint32_t crc = 0;
  for (auto _ : state) benchmark::DoNotOptimize(crc = kernel->extend(crc, bytes.data(), length));
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * length));
}

void Copy(benchmark::State& state, const crc32c::Kernel* kernel) {
  const size_t length = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> from(length, 0x5a), to(length);
  uint32_t crc = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(crc = kernel->copy(crc, to.data(), from.data(), length));
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * length));
}

// What Copy is measured against.
void CopyWithoutChecksum(benchmark::State& state) {
  const size_t length = static_cast<size_t>(state.range(0));
  std::vector<uint8_t> from(length, 0x5a), to(length);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), length);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * length));
}

void RegisterAll() {
  std::vector<const crc32c::Kernel*> kernels = {&crc32c::kPortable};
  for (const crc32c::Kernel* kernel : crc32c::HardwareKernels()) {
    if (kernel != nullptr) kernels.push_back(kernel);
  }
  for (const crc32c::Kernel* kernel : kernels) {
    const std::string name = kernel->name;
    benchmark::RegisterBenchmark(("Extend/" + name).c_str(), Extend, kernel)->Arg(64)->Arg(1460)->Arg(65536);
    benchmark::RegisterBenchmark(("Copy/" + name).c_str(), Copy, kernel)->Arg(64)->Arg(1460)->Arg(65536);
  }
  benchmark::RegisterBenchmark("memcpy", CopyWithoutChecksum)->Arg(64)->Arg(1460)->Arg(65536);
}

}  // namespace
}  // namespace weft

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  weft::RegisterAll();
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
