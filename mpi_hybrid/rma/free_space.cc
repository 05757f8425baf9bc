#include "mpi_hybrid/rma/free_space.h"

namespace weft::mpi::rma {

FreeSpace::FreeSpace(uint64_t begin, uint64_t bytes) : bytes_(bytes) { Add(begin, bytes); }

void FreeSpace::Add(uint64_t at, uint64_t bytes) {
  by_address_.emplace(at, bytes);
  by_bytes_.emplace(bytes, at);
}

void FreeSpace::Remove(std::map<uint64_t, uint64_t>::iterator part) {
  by_bytes_.erase({part->second, part->first});
  by_address_.erase(part);
}

std::optional<uint64_t> FreeSpace::Take(uint64_t bytes, uint64_t alignment) {
  for (auto candidate = by_bytes_.lower_bound({bytes, 0}); candidate != by_bytes_.end(); ++candidate) {
    const auto [room, begin] = *candidate;
    const uint64_t at = (begin + alignment - 1) & ~(alignment - 1), skipped = at - begin;
    if (skipped > room - bytes) continue;
    Remove(by_address_.find(begin));
    if (skipped != 0) Add(begin, skipped);
    if (room != skipped + bytes) Add(at + bytes, room - skipped - bytes);
    return at;
  }
  return std::nullopt;
}

void FreeSpace::Give(uint64_t at, uint64_t bytes) {
  auto behind = by_address_.lower_bound(at);
  if (behind != by_address_.end() && behind->first == at + bytes) {
    bytes += behind->second;
    Remove(behind);
  }
  auto in_front = by_address_.lower_bound(at);
  if (in_front != by_address_.begin()) {
    --in_front;
    if (in_front->first + in_front->second == at) {
      at = in_front->first;
      bytes += in_front->second;
      Remove(in_front);
    }
  }
  Add(at, bytes);
}

}  // namespace weft::mpi::rma
