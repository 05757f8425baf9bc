#ifndef SIM_MEMORY_PAGES_H_
#define SIM_MEMORY_PAGES_H_

#include <cstdint>

namespace weft::sim {

// What pinning does on hardware: brings the pages of `length` bytes at `address` in, and finds out that they are there and may be
// used as asked. 0, or EFAULT: not mapped, or no permission.
int PopulatePages(uint64_t address, uint64_t length, bool write);

}  // namespace weft::sim

#endif  // SIM_MEMORY_PAGES_H_
