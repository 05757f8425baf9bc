#include "sim/memory/atomics.h"

#include "base/dma_scope.h"

namespace weft::sim {
namespace {

// Section 5.1.1: the mask's set bits end independent fields; no carry crosses from one into the next.
uint64_t MaskedSum(uint64_t value, uint64_t add, uint64_t mask) {
  uint64_t sum = 0;
  bool carry = false;
  for (int bit = 0; bit < 64; ++bit) {
    const bool a = value >> bit & 1, b = add >> bit & 1;
    sum |= static_cast<uint64_t>(a ^ b ^ carry) << bit;
    carry = (a && b) || (carry && (a || b));
    if (mask >> bit & 1) carry = false;
  }
  return sum;
}

// What `value` becomes; section 5.1.2 for the masked comparison.
uint64_t Result(const rdmap::AtomicOperation& operation, uint64_t value) {
  if (operation.code == rdmap::AtomicCode::kFetchAdd) {
    return operation.add_or_swap_mask == 0 ? value + operation.add_or_swap
                                           : MaskedSum(value, operation.add_or_swap, operation.add_or_swap_mask);
  }
  if (((operation.compare ^ value) & operation.compare_mask) != 0) return value;
  return (value & ~operation.add_or_swap_mask) | (operation.add_or_swap & operation.add_or_swap_mask);
}

}  // namespace

uint64_t CarryOut(const rdmap::AtomicOperation& operation, uint64_t* memory) {
  const DmaScope dma;
  uint64_t found = __atomic_load_n(memory, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(memory, &found, Result(operation, found), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
  }
  return found;
}

}  // namespace weft::sim
