#include "mpi_hybrid/rma/control_block.h"

namespace weft::mpi::rma {

static_assert(std::atomic<uint32_t>::is_always_lock_free && std::atomic<uint8_t>::is_always_lock_free);
static_assert(sizeof(std::atomic<uint32_t>) == 4 && sizeof(std::atomic<uint8_t>) == 1, "processes share them");

ControlBlock::ControlBlock(void* memory, int count) : ranks(count) {
  auto* at = static_cast<uint8_t*>(memory);
  const auto many = static_cast<size_t>(count);
  head = reinterpret_cast<ControlHead*>(at);
  signals = reinterpret_cast<Signals*>(at += sizeof(ControlHead));
  readers = reinterpret_cast<std::atomic<uint8_t>*>(at += many * sizeof(Signals));
  waiting = reinterpret_cast<std::atomic<uint8_t>*>(at += many);
}

size_t ControlBlock::Bytes(int ranks) {
  return sizeof(ControlHead) + static_cast<size_t>(ranks) * (sizeof(Signals) + 2 * sizeof(std::atomic<uint8_t>));
}

}  // namespace weft::mpi::rma
