#ifndef WIRES_HOST_GRANTS_LAYOUT_H_
#define WIRES_HOST_GRANTS_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

// Buffers of one process in which its peer places, or which it reads, by itself, without anybody's help. The owner writes the grants, the peer the rest; either may write
// anything. A lie of the owner's leads to a Write into its own memory only; one of the peer's costs it the connection.
namespace weft::host {

inline constexpr size_t kGrants = 16;

// What a grant opens.
struct Grant {
  // Relaxed: the key publishes them, and they do not change while the peer uses the grant.
  std::atomic<uint64_t> offset, memory, length; // of the buffer: its first byte's tagged offset and address; bytes
  std::atomic<uint32_t> rights;                 // kWritable, kReadable
};
inline constexpr uint32_t kWritable = 1, kReadable = 2;
static_assert(sizeof(Grant) == 32);

// `keys` and `placing` pair: the owner clears a key and looks whether the peer uses the grant (Granter::ShutPlace), the peer says that it does
// and looks at the key (Placer::Reach), a full fence between the two at each side.
struct GrantWords {
  // 0: nothing; else KeyOf() the buffer's tag. The last to be set, with release, and the first to be cleared.
  alignas(64) std::atomic<uint64_t> keys[kGrants];
  alignas(64) Grant grants[kGrants];
  // The peer's: 0, or InUse() the grant by which it writes or reads just now. Cleared with release: an owner that sees that has what it wrote.
  alignas(64) std::atomic<uint32_t> placing;
  std::atomic<uint32_t> reaches;              // the peer's: it can write into the owner's memory, and read it
};

inline uint64_t KeyOf(uint32_t tag) { return uint64_t{1} << 32 | tag; }
// The first place that is looked at for a tag. Those behind it follow, around the end, for tags that want the same.
inline size_t HomeOf(uint32_t tag) { return (tag * 0x9e3779b1u) >> 28; }
static_assert(kGrants == 16);
inline size_t NextPlace(size_t place) { return (place + 1) % kGrants; }

inline constexpr uint32_t kReads = 0x100;
inline uint32_t InUse(size_t place, bool reads) { return static_cast<uint32_t>(place + 1) | (reads ? kReads : 0); }
inline bool IsInUse(uint32_t placing, size_t place) { return (placing & ~kReads) == place + 1; }

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_LAYOUT_H_
