#include "mpi_hybrid/rma/element_atomics.h"

#include <atomic>
#include <cstring>
#include <type_traits>

#include "base/dma_scope.h"
#include "mpi_hybrid/datatype/op.h"
#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi::rma {
namespace {

template <typename T>
T Load(const uint8_t* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// `step(atomic, given) -> before` for each element.
template <typename T, typename Step>
void ForEach(const uint8_t* given, uint8_t* memory, uint32_t count, uint8_t* fetched, Step step) {
  for (uint32_t i = 0; i < count; ++i) {
    std::atomic_ref<T> element(reinterpret_cast<T*>(memory)[i]);
    const T before = step(element, given == nullptr ? T() : Load<T>(given + i * sizeof(T)));
    if (fetched != nullptr) std::memcpy(fetched + i * sizeof(T), &before, sizeof before);
  }
}

// The value changes from what `next` was told to what it says, with nothing in between.
template <typename T, typename Next>
T Exchange(std::atomic_ref<T> element, Next next) {
  T before = element.load(std::memory_order_relaxed);
  while (!element.compare_exchange_weak(before, next(before))) {
  }
  return before;
}

// Sums of floating point numbers, without a call for each.
template <typename Float, typename T>
T AddFloat(std::atomic_ref<T> element, T given) {
  return Exchange(element, [given](T before) {
    Float sum, addend;
    std::memcpy(&sum, &before, sizeof sum);
    std::memcpy(&addend, &given, sizeof addend);
    sum += addend;
    T after;
    std::memcpy(&after, &sum, sizeof after);
    return after;
  });
}

template <typename T>
void Accumulate(MPI_Op op, MPI_Datatype basic, BasicKind kind, const uint8_t* given, uint8_t* memory, uint32_t count,
                uint8_t* fetched) {
  using Ref = std::atomic_ref<T>;
  const bool integer = kind == BasicKind::kSigned || kind == BasicKind::kUnsigned || kind == BasicKind::kWide;
  if (op == MPI_NO_OP) return ForEach<T>(nullptr, memory, count, fetched, [](Ref e, T) { return e.load(); });
  if (op == MPI_REPLACE) return ForEach<T>(given, memory, count, fetched, [](Ref e, T v) { return e.exchange(v); });
  if (op == MPI_SUM && integer) return ForEach<T>(given, memory, count, fetched, [](Ref e, T v) { return e.fetch_add(v); });
  if (op == MPI_SUM && kind == BasicKind::kFloat) {
    if constexpr (sizeof(T) == 8) {
      return ForEach<T>(given, memory, count, fetched, [](Ref e, T v) { return AddFloat<double>(e, v); });
    } else if constexpr (sizeof(T) == 4) {
      return ForEach<T>(given, memory, count, fetched, [](Ref e, T v) { return AddFloat<float>(e, v); });
    }
  }
  ForEach<T>(given, memory, count, fetched, [op, basic](Ref element, T value) {
    return Exchange(element, [=](T before) {
      Op::ApplyBasic(op, basic, &value, &before, 1);
      return before;
    });
  });
}

}  // namespace

void AccumulateAtomically(MPI_Op op, const ElementType& type, const uint8_t* given, uint8_t* memory, uint32_t count,
                          uint8_t* fetched) {
  const DmaScope dma;
  const BasicKind kind = FindBasic(type.handle)->kind;
  switch (type.size) {
    case 1: return Accumulate<uint8_t>(op, type.handle, kind, given, memory, count, fetched);
    case 2: return Accumulate<uint16_t>(op, type.handle, kind, given, memory, count, fetched);
    case 4: return Accumulate<uint32_t>(op, type.handle, kind, given, memory, count, fetched);
    default: return Accumulate<uint64_t>(op, type.handle, kind, given, memory, count, fetched);
  }
}

namespace {

template <typename T>
void CompareAndSwap(const uint8_t* compare, const uint8_t* given, uint8_t* memory, uint8_t* fetched) {
  T expected = Load<T>(compare);
  std::atomic_ref<T>(*reinterpret_cast<T*>(memory)).compare_exchange_strong(expected, Load<T>(given));
  std::memcpy(fetched, &expected, sizeof expected);
}

}  // namespace

void CompareAndSwapAtomically(const ElementType& type, const uint8_t* compare, const uint8_t* given, uint8_t* memory,
                              uint8_t* fetched) {
  const DmaScope dma;
  switch (type.size) {
    case 1: return CompareAndSwap<uint8_t>(compare, given, memory, fetched);
    case 2: return CompareAndSwap<uint16_t>(compare, given, memory, fetched);
    case 4: return CompareAndSwap<uint32_t>(compare, given, memory, fetched);
    default: return CompareAndSwap<uint64_t>(compare, given, memory, fetched);
  }
}

}  // namespace weft::mpi::rma
