#include "base/crc32c.h"

#include "base/crc32c_kernels.h"

namespace weft {
namespace {

const crc32c::Kernel& Best() {
  static const crc32c::Kernel& best = []() -> const crc32c::Kernel& {
    for (const crc32c::Kernel* kernel : crc32c::HardwareKernels()) {
      if (kernel != nullptr) return *kernel;
    }
    return crc32c::kPortable;
  }();
  return best;
}

}  // namespace

uint32_t Crc32cExtend(uint32_t crc, ByteSpan bytes) { return ~Best().extend(~crc, bytes.data(), bytes.size()); }

uint32_t Crc32cCopy(uint32_t crc, uint8_t* to, const uint8_t* from, size_t count) {
  return ~Best().copy(~crc, to, from, count);
}

}  // namespace weft
