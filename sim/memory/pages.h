#ifndef SIM_MEMORY_PAGES_H_
#define SIM_MEMORY_PAGES_H_

#include <cstdint>

namespace weft::sim {

// Does what pinning does on hardware: brings in the pages of `length` bytes at `address`, and checks that they are
// mapped with the required permission. Returns 0, or EFAULT: not mapped, or no permission.
int PopulatePages(uint64_t address, uint64_t length, bool write);

}  // namespace weft::sim

#endif  // SIM_MEMORY_PAGES_H_
