#include "mpi_hybrid/rma/target_window.h"

#include <cstring>

#include "mpi_hybrid/datatype/predefined.h"

namespace weft::mpi::rma {

const TargetWindow::Region* TargetWindow::RegionOf(uint64_t address, uint64_t bytes) const {
  for (const Region& region : regions) {
    const uint64_t first = reinterpret_cast<uintptr_t>(region.base);
    if (address >= first && bytes <= region.size && address - first <= region.size - bytes) return &region;
  }
  return nullptr;
}

bool TargetWindow::Attached(uint64_t address, uint64_t bytes) const {
  while (true) {
    const Region* region = RegionOf(address, 1);
    if (region == nullptr) return false;
    const uint64_t inside = region->size - (address - reinterpret_cast<uintptr_t>(region->base));
    if (bytes <= inside) return true;
    address += inside;
    bytes -= inside;
  }
}

uint8_t* TargetWindow::Resolve(uint64_t offset, uint64_t bytes) const {
  if (dynamic) return Attached(offset, bytes) ? reinterpret_cast<uint8_t*>(offset) : nullptr;
  if (bytes > size || offset > size - bytes) return nullptr;
  return base + offset;
}

bool FindElementType(MPI_Datatype handle, ElementType* type) {
  const Basic* basic = FindBasic(handle);
  if (basic == nullptr || basic->kind == BasicKind::kMarker || basic->size == 0) return false;
  *type = {handle, basic->size, basic->extent, basic->size, 0, 0, IsIntegral(basic->kind)};
  if (basic->kind != BasicKind::kPair) return true;
  type->first = FindBasic(basic->first)->size;
  type->second_offset = basic->second_offset;
  type->span = basic->second_offset + FindBasic(basic->second)->size;
  return true;
}

void FetchElements(const ElementType& type, const uint8_t* from, uint32_t count, uint8_t* packed) {
  if (type.first == 0) {
    std::memcpy(packed, from, size_t{count} * type.size);
    return;
  }
  for (uint32_t i = 0; i < count; ++i, from += type.extent, packed += type.size) {
    std::memcpy(packed, from, type.first);
    std::memcpy(packed + type.first, from + type.second_offset, type.size - type.first);
  }
}

}  // namespace weft::mpi::rma
