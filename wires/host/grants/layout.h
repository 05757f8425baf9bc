#ifndef WIRES_HOST_GRANTS_LAYOUT_H_
#define WIRES_HOST_GRANTS_LAYOUT_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

// Buffers of one process (the owner) that its peer writes and reads itself. The owner writes the grants; the peer
// writes the rest. Either side may write anything. If the owner lies, the peer's Write goes only to the owner's own
// memory. If the peer lies, it loses the connection.
namespace weft::host {

inline constexpr size_t kGrants = 16;

// The buffer that a grant opens.
struct Grant {
  // Relaxed: the key publishes them, and they do not change while the peer uses the grant.
  std::atomic<uint64_t> offset, memory, length; // of the buffer: its first byte's tagged offset and address; bytes
  std::atomic<uint32_t> rights;                 // kWritable, kReadable
};
inline constexpr uint32_t kWritable = 1, kReadable = 2;
static_assert(sizeof(Grant) == 32);

// `keys` and `placing` pair. The owner clears a key and then checks whether the peer uses the grant
// (Granter::ShutPlace). The peer sets that it uses the grant and then checks the key (Placer::Reach). Both sides have a
// full fence in between.
struct GrantWords {
  // 0: no buffer; otherwise KeyOf() the buffer's tag. Set last, with release, and cleared first.
  alignas(64) std::atomic<uint64_t> keys[kGrants];
  alignas(64) Grant grants[kGrants];
  // Written by the peer: 0, or InUse() of the grant that it is writing or reading. Cleared with release: an owner that
  // sees this also sees what the peer wrote.
  alignas(64) std::atomic<uint32_t> placing;
  std::atomic<uint32_t> reaches;              // written by the peer: whether it can write and read the owner's memory
};

inline uint64_t KeyOf(uint32_t tag) { return uint64_t{1} << 32 | tag; }
// The first grant to look at for a tag. For tags with the same first grant, those behind it follow, around the end.
inline size_t HomeOf(uint32_t tag) { return (tag * 0x9e3779b1u) >> 28; }
static_assert(kGrants == 16);
inline size_t NextPlace(size_t place) { return (place + 1) % kGrants; }

inline constexpr uint32_t kReads = 0x100;
inline uint32_t InUse(size_t place, bool reads) { return static_cast<uint32_t>(place + 1) | (reads ? kReads : 0); }
inline bool IsInUse(uint32_t placing, size_t place) { return (placing & ~kReads) == place + 1; }

}  // namespace weft::host

#endif  // WIRES_HOST_GRANTS_LAYOUT_H_
