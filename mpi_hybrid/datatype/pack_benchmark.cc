#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "mpi_hybrid/datatype/constructors.h"
#include "mpi_hybrid/datatype/external32.h"

namespace weft::mpi {
namespace {

const Datatype& Double() { return *Datatype::Find(MPI_DOUBLE); }

// Every other double of `bytes` of data.
Ref<Datatype> Vector(MPI_Aint bytes) { return MakeVector(bytes / 8, 1, 16, Double()); }

// An int and two doubles, 24 bytes apart.
Ref<Datatype> Structures(MPI_Aint bytes) {
  const MPI_Aint lengths[] = {1, 2}, displacements[] = {0, 8};
  const Ref<const Datatype> types[] = {Ref<const Datatype>(Datatype::Find(MPI_INT)), Ref<const Datatype>(&Double())};
  return MakeContiguous(bytes / 20, *MakeStruct(lengths, displacements, types));
}

// Single doubles at irregular distances.
Ref<Datatype> Indexed(MPI_Aint bytes) {
  std::vector<MPI_Aint> displacements;
  for (MPI_Aint i = 0; i < bytes / 8; ++i) displacements.push_back(8 * (4 * i + i * 40503 / 64 % 3));
  return MakeIndexedBlock(1, displacements, Double());
}

// A face of a cube of doubles, in blocks of 4.
Ref<Datatype> Face(MPI_Aint bytes) {
  const MPI_Aint side = bytes / 32;
  const MPI_Aint sizes[] = {side, 64}, subsizes[] = {side, 4}, starts[] = {0, 8};
  return MakeSubarray(sizes, subsizes, starts, MPI_ORDER_C, Double());
}

using Make = Ref<Datatype>(MPI_Aint bytes);

void PackType(benchmark::State& state, Make* make) {
  const Ref<Datatype> type = make(state.range(0));
  std::vector<uint8_t> memory(static_cast<size_t>(type->true_lb + type->true_extent), 1), packed(static_cast<size_t>(type->size));
  for (auto _ : state) {
    TypeCursor cursor(memory.data(), 1, *type);
    Pack(cursor, packed);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * type->size);
}

void UnpackType(benchmark::State& state, Make* make) {
  const Ref<Datatype> type = make(state.range(0));
  std::vector<uint8_t> memory(static_cast<size_t>(type->true_lb + type->true_extent), 1), packed(static_cast<size_t>(type->size));
  for (auto _ : state) {
    TypeCursor cursor(memory.data(), 1, *type);
    Unpack(cursor, packed);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * type->size);
}

// What packing every other double is measured against.
void LoopOverDoubles(benchmark::State& state) {
  const size_t count = static_cast<size_t>(state.range(0)) / 8;
  std::vector<double> memory(2 * count, 1), packed(count);
  for (auto _ : state) {
    for (size_t i = 0; i < count; ++i) packed[i] = memory[2 * i];
    benchmark::DoNotOptimize(packed.data());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

void Copy(benchmark::State& state) {
  std::vector<uint8_t> from(static_cast<size_t>(state.range(0)), 1), to(from.size());
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), from.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}

// To external32 and back: of one type in one piece of memory, as in most messages and files.
void External32(benchmark::State& state, MPI_Datatype handle) {
  const Datatype& type = *Datatype::Find(handle);
  const MPI_Count count = state.range(0) / type.size;
  std::vector<uint8_t> memory(static_cast<size_t>(state.range(0)), 1), external(memory.size());
  for (auto _ : state) {
    PackExternal(memory.data(), count, type, external.data());
    UnpackExternal(external.data(), memory.data(), count, type);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(2 * state.iterations() * state.range(0));
}

#define SIZES ->Arg(256)->Arg(16384)->Arg(1 << 20)
BENCHMARK(Copy) SIZES;
BENCHMARK(LoopOverDoubles) SIZES;
BENCHMARK_CAPTURE(PackType, vector_of_doubles, Vector) SIZES;
BENCHMARK_CAPTURE(UnpackType, vector_of_doubles, Vector) SIZES;
BENCHMARK_CAPTURE(PackType, structures, Structures) SIZES;
BENCHMARK_CAPTURE(UnpackType, structures, Structures) SIZES;
BENCHMARK_CAPTURE(PackType, indexed_doubles, Indexed) SIZES;
BENCHMARK_CAPTURE(UnpackType, indexed_doubles, Indexed) SIZES;
BENCHMARK_CAPTURE(PackType, face, Face) SIZES;
BENCHMARK_CAPTURE(External32, bytes, MPI_BYTE) SIZES;
BENCHMARK_CAPTURE(External32, doubles, MPI_DOUBLE) SIZES;

}  // namespace
}  // namespace weft::mpi

BENCHMARK_MAIN();
