#include "sim/memory/null_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include "base/uncancelled.h"
#include "sim/device/limits.h"

namespace weft::sim {
namespace {

// What is written goes to the same few pages again and again.
constexpr uint64_t kSinkBytes = uint64_t{16} << 20;
static_assert(kMaxMessage % kSinkBytes == 0);

uint8_t* MapZeroes() {
  void* mapped = mmap(nullptr, kMaxMessage, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? nullptr : static_cast<uint8_t*>(mapped);
}

uint8_t* MapSink() {
  const int file = memfd_create("weft-null", MFD_CLOEXEC);
  if (file < 0) return nullptr;
  uint8_t* sink = nullptr;
  void* mapped = mmap(nullptr, kMaxMessage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped != MAP_FAILED && ftruncate(file, kSinkBytes) == 0) {
    sink = static_cast<uint8_t*>(mapped);
    for (uint64_t at = 0; at < kMaxMessage && sink != nullptr; at += kSinkBytes) {
      if (mmap(static_cast<uint8_t*>(mapped) + at, kSinkBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) ==
          MAP_FAILED) {
        sink = nullptr;
      }
    }
  }
  uncancelled::Close(file);
  return sink;
}

}  // namespace

NullMemory::NullMemory() : zeroes_(MapZeroes()), sink_(MapSink()) {}

const NullMemory& NullMemory::Process() {
  static const NullMemory* const memory = new NullMemory;
  return *memory;
}

}  // namespace weft::sim
