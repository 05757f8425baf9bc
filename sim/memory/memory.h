#ifndef SIM_MEMORY_MEMORY_H_
#define SIM_MEMORY_MEMORY_H_

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ddp/types.h"
#include "rdmap/stream.h"

namespace weft::sim {

// Protection domain: an identity that regions and queue pairs share.
struct Pd {
  explicit Pd(uint32_t number) : id(number) {}
  const uint32_t id;
  std::atomic<int> users{0};  // regions, windows and queue pairs; ibv_dealloc_pd returns EBUSY if there are any
};

// Identifies a queue pair that looks up memory. A window of type 2 belongs to the queue pair that bound it. Numbers of
// queue pairs are reused; these are not.
using WindowOwner = uint64_t;
inline constexpr WindowOwner kNoWindowOwner = 0;

// Queue pairs that looked up a piece of memory and may hold pointers into it. Each queue pair is one of 64 bits, chosen
// by its number, so several share a bit. Only these queue pairs are asked to release memory that goes away.
using MemoryUsers = uint64_t;
inline constexpr size_t kMemoryUsers = 64;
inline constexpr MemoryUsers kAllMemoryUsers = ~MemoryUsers{0};
inline size_t MemoryUserIndex(uint32_t queue_pair) { return queue_pair % kMemoryUsers; }

// The user of a look-up.
struct MemoryUser {
  static MemoryUser QueuePair(uint32_t number, WindowOwner owner) { return {owner, MemoryUsers{1} << MemoryUserIndex(number)}; }
  WindowOwner owner = kNoWindowOwner;
  MemoryUsers as = kAllMemoryUsers;
};

struct RegionInfo {
  ddp::STag stag;       // lkey and rkey
  uint64_t address = 0; // of its first byte in this process
  uint64_t offset = 0;  // tagged offset of its first byte (iova)
  uint64_t length = 0;
  int access = 0;       // IBV_ACCESS_*
  WindowOwner owner = kNoWindowOwner;  // of a bound window of type 2
  MemoryUsers users = 0;
};

// Whether one of the scatter/gather elements of a work request is in the region.
inline bool NamesRegion(const ibv_sge* elements, unsigned count, const RegionInfo& region) {
  for (unsigned i = 0; i < count; ++i) {
    if (elements[i].lkey == region.stag.value) return true;
  }
  return false;
}

// A request to bind a memory window (ibv_bind_mw, IBV_WR_BIND_MW).
struct WindowBind {
  ddp::STag window;      // the window, with its new key
  ddp::STag region;      // lkey of the region
  uint64_t address = 0;  // first byte, in the region's addresses
  uint64_t length = 0;   // 0: unbind (type 1)
  int access = 0;        // IBV_ACCESS_REMOTE_*, IBV_ACCESS_ZERO_BASED
};

// All memory regions and windows of the RNIC by STag. RFC 5042 section 6.2: STags are not predictable, and a freed one
// is not reused soon. Thread safe; a look-up holds the lock of one slot briefly.
class MemoryTable {
 public:
  MemoryTable();
  ~MemoryTable();

  // Errors (errno): EINVAL (contradictory access flags, or a range that wraps), EFAULT (not mapped, or not writable
  // although the access asks for it), ENOMEM (no slot). With IBV_ACCESS_ON_DEMAND the memory is checked at each access
  // instead, and `address` 0 with `length` SIZE_MAX is the whole address space.
  Result<RegionInfo, int> Register(Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access);
  // The same for an existing region, which keeps its STag (ibv_rereg_mr). After an error the region is unchanged.
  // Further errors: ENOENT (unknown) and EBUSY (windows are bound to it). Rnic::ReregisterMemory makes streams release
  // the old memory. `*was`, if not null, here and below: what could be accessed before.
  Result<RegionInfo, int> Reregister(ddp::STag stag, Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access,
                                     RegionInfo* was = nullptr);
  // ibv_alloc_null_mr: a local key for any address and up to kMaxMessage bytes. Reads return zeros; writes are dropped.
  // ENOMEM.
  Result<RegionInfo, int> RegisterNull(Pd& pd);
  // After return no new look-up succeeds. Rnic::DeregisterMemory makes streams release memory that they hold. Returns
  // 0, ENOENT (unknown) or EBUSY (windows are bound to it).
  int Deregister(ddp::STag stag, RegionInfo* was = nullptr);
  // The region with this lkey; nullopt: unknown, or of another domain.
  std::optional<RegionInfo> Find(const Pd& pd, uint32_t lkey);

  // Allocates a window of the domain, not bound yet. ENOMEM.
  Result<ddp::STag, int> AllocateWindow(Pd& pd, ibv_mw_type type);
  // Also unbinds. `stag`: any key that the window has had. Returns false if it is unknown.
  bool DeallocateWindow(ddp::STag stag, RegionInfo* was = nullptr);
  // Returns false if refused; the window is then unchanged. A window of type 1 may be bound already, and is then bound
  // anew. A window of type 2 must not be bound; only `owner` can then use it (type 2B). `was->length` is 0 if it was
  // not bound.
  bool BindWindow(const Pd& pd, WindowOwner owner, const WindowBind& bind, RegionInfo* was = nullptr);

  // Memory for a tagged access by the peer (RFC 5040 section 5, RFC 5041 section 5). `*region`, if not null, is set to
  // the region of the memory; this is `stag` itself unless that is a window.
  Result<uint8_t*, rdmap::AccessError> ResolveRemote(const Pd& pd, ddp::STag stag, uint64_t offset, uint32_t length, int access,
                                                     const MemoryUser& who = {}, ddp::STag* region = nullptr);
  // A whole region whose memory stays mapped: neither a window nor on demand. nullopt: there is no such region.
  std::optional<RegionInfo> FindOpen(const Pd& pd, ddp::STag stag, const MemoryUser& who);
  // Increases before any queue pair is asked to release a region: what was known about regions before may no longer be
  // true.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  // Memory of a scatter/gather element of a work request. nullptr: invalid key, range or rights.
  uint8_t* ResolveLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write,
                        const MemoryUser& who = {});
  // The region of such an element, with or without IBV_ACCESS_ON_DEMAND. nullopt: the key is not a region's; use
  // ResolveLocal().
  std::optional<RegionInfo> FindLocal(const Pd& pd, uint32_t lkey, const MemoryUser& who);
  // Describes for the program's author why ResolveLocal() refuses, with the properties of the region. Empty: it does
  // not refuse.
  std::string ExplainLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write);
  // Local invalidate: the STag stays allocated but is refused from now on. Returns false if it cannot be invalidated:
  // unknown, a region with bound windows, a window of type 1 or of another owner.
  bool Invalidate(const Pd& pd, ddp::STag stag, WindowOwner owner = kNoWindowOwner, RegionInfo* was = nullptr);
  // The same for a peer's Send with Invalidate. Only a window of type 2 belongs to a single stream, and only that
  // stream may invalidate it. A region belongs to all queue pairs of its domain, and its key is also the program's own
  // lkey ("not able to invalidate an STag [...] shared on multiple streams", RFC 5040 section 8.1.1, item 7; adapters
  // and the kernel's rxe refuse it, too). nullopt: it is invalidated.
  std::optional<rdmap::AccessError> InvalidateForPeer(const Pd& pd, ddp::STag stag, WindowOwner owner, RegionInfo* was = nullptr);

 private:
  struct Slot;
  enum class Kind : uint8_t { kRegion, kNull, kWindow1, kWindow2 };
  static constexpr uint32_t kSlotsPerChunk = 4096;
  static constexpr uint32_t kChunks = 256;

  static bool IsWindow(Kind kind) { return kind == Kind::kWindow1 || kind == Kind::kWindow2; }
  // Whether such a region may be made, and its memory is mapped: 0 or an errno of Register().
  static int CheckRegion(uint64_t address, uint64_t length, uint64_t offset, int access);
  Slot* Find(ddp::STag stag);
  // An unused slot, with a new key; nullptr: none is left.
  Slot* TakeSlot();
  void ReturnSlot(ddp::STag stag);
  // Memory at `offset` of what the slot describes, if it is mapped.
  static Result<uint8_t*, rdmap::AccessError> Locate(const RegionInfo& info, uint64_t offset, uint32_t length, int access);
  // Requires windows_mutex_.
  bool BindToRegion(const Pd& pd, const WindowBind& bind, RegionInfo* bound);
  void LeaveRegion(ddp::STag region, MemoryUsers users);
  static void Tell(RegionInfo* was, const Slot& slot);  // requires the slot's lock
  uint32_t Scramble(uint32_t slot) const;    // 24-bit bijections, keyed per process
  uint32_t Unscramble(uint32_t index) const;

  std::array<std::atomic<Slot*>, kChunks> chunks_{};  // stored with release, loaded with acquire at each look-up
  // Increases before a queue pair is asked to release memory. That queue pair sees it because both take its lock.
  std::atomic<uint64_t> changes_{1};
  std::array<uint32_t, 4> keys_;
  std::mutex windows_mutex_;          // serialises binding, unbinding and deregistration; locked before slots
  std::mutex mutex_;                  // guards the members below
  std::vector<uint32_t> free_;        // ring of slots, the one freed longest ago first
  size_t free_front_ = 0;
  uint32_t slots_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_MEMORY_H_
