#include "transport/sctp/usrsctp/pool.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

namespace weft::transport::sctp {
namespace {

constexpr size_t kStep = 64;
constexpr size_t kLargest = 2048 + kStep;  // of what is kept: a cluster of usrsctp's fits
constexpr size_t kSizes = kLargest / kStep;

// In front of each piece of memory.
struct alignas(alignof(std::max_align_t)) Header {
  size_t size;   // of the memory behind it, a multiple of kStep; 0: it is not kept
  Header* next;  // while it is kept
};

struct Kept {
  Header* of_size[kSizes + 1] = {};
  size_t bytes = 0;
} g_kept;

// Sanitizers are to see each use of memory that was given back.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kKeeps = false;
#else
constexpr bool kKeeps = true;
#endif

}  // namespace

void* PoolAllocate(size_t bytes) {
  if (bytes > SIZE_MAX - sizeof(Header) - kStep) return nullptr;
  const bool kept = kKeeps && bytes <= kLargest;
  const size_t size = kept ? (bytes + kStep - 1) / kStep * kStep : 0;
  Header*& first = g_kept.of_size[size / kStep];
  if (size > 0 && first != nullptr) {
    Header* const header = first;
    first = header->next;
    __builtin_prefetch(first);  // the next that is asked for; a queue of messages is larger than the nearest caches
    g_kept.bytes -= size;
    return header + 1;
  }
  void* const memory = std::malloc(sizeof(Header) + (kept ? size : bytes));
  return memory == nullptr ? nullptr : new (memory) Header{.size = size, .next = nullptr} + 1;
}

void PoolFree(void* memory) {
  if (memory == nullptr) return;
  Header* const header = static_cast<Header*>(memory) - 1;
  if (header->size == 0 || g_kept.bytes + header->size > kMostKept) {
    std::free(header);
    return;
  }
  Header*& first = g_kept.of_size[header->size / kStep];
  header->next = first;
  first = header;
  g_kept.bytes += header->size;
}

size_t PoolKept() { return g_kept.bytes; }

}  // namespace weft::transport::sctp

// --- what usrsctp calls in place of the C library's ---

extern "C" {

void* weft_usrsctp_malloc(size_t bytes) { return weft::transport::sctp::PoolAllocate(bytes); }

void* weft_usrsctp_calloc(size_t count, size_t bytes) {
  size_t all;
  if (__builtin_mul_overflow(count, bytes, &all)) return nullptr;
  void* const memory = weft::transport::sctp::PoolAllocate(all);
  if (memory != nullptr) std::memset(memory, 0, all);
  return memory;
}

void weft_usrsctp_free(void* memory) { weft::transport::sctp::PoolFree(memory); }

}  // extern "C"
