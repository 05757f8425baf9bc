#ifndef WIRES_HOST_GRANTS_LAYOUT_H_
#define WIRES_HOST_GRANTS_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

// Buffers of one process in which its peer places, or which it reads, by itself, without anybody's help. The owner writes the grants, the peer the rest; either may write
// anything. A lie of the owner's leads to a Write into its own memory only; one of the peer's costs it the connection.
namespace weft::host {

inline constexpr size_t kGrants = 8;

struct Grant {
  alignas(64) std::atomic<uint64_t> key;        // 0: nothing; else KeyOf() the buffer's tag. The last to be set
  std::atomic<uint64_t> offset, memory, length; // of the buffer: its first byte's tagged offset and address; bytes
  std::atomic<uint32_t> rights;                 // kWritable, kReadable
};
inline constexpr uint32_t kWritable = 1, kReadable = 2;
static_assert(sizeof(Grant) == 64);

struct GrantWords {
  Grant grants[kGrants];
  alignas(64) std::atomic<uint32_t> placing;  // the peer's: 0, or 1 + the number of the grant by which it places or reads just now
  std::atomic<uint32_t> reaches;              // the peer's: it can write into the owner's memory, and read it
};

inline uint64_t KeyOf(uint32_t tag) { return uint64_t{1} << 32 | tag; }
inline size_t GrantOf(uint32_t tag) { return (tag * 0x9e3779b1u) >> 29; }
static_assert(kGrants == 8);

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_LAYOUT_H_
