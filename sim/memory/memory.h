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
  std::atomic<int> users{0};  // regions, windows and queue pairs; ibv_dealloc_pd is EBUSY while there are any
};

// What a queue pair looks memory up as. A window of type 2 belongs to the queue pair that bound it; numbers of queue pairs come back,
// these do not.
using WindowOwner = uint64_t;
inline constexpr WindowOwner kNoWindowOwner = 0;

// Queue pairs that looked a piece of memory up, and may hold pointers into it: each is one of 64 bits by its number, which others have too.
// Only they are asked to let go of memory that goes.
using MemoryUsers = uint64_t;
inline constexpr size_t kMemoryUsers = 64;
inline constexpr MemoryUsers kAllMemoryUsers = ~MemoryUsers{0};
inline size_t MemoryUserIndex(uint32_t queue_pair) { return queue_pair % kMemoryUsers; }

// Who looks memory up.
struct MemoryUser {
  static MemoryUser QueuePair(uint32_t number, WindowOwner owner) { return {owner, MemoryUsers{1} << MemoryUserIndex(number)}; }
  WindowOwner owner = kNoWindowOwner;
  MemoryUsers as = kAllMemoryUsers;
};

struct RegionInfo {
  ddp::STag stag;       // lkey and rkey
  uint64_t address = 0; // of its first byte, as the process sees it
  uint64_t offset = 0;  // tagged offset of its first byte (iova)
  uint64_t length = 0;
  int access = 0;       // IBV_ACCESS_*
  WindowOwner owner = kNoWindowOwner;  // of a window of type 2 that is bound
  MemoryUsers users = 0;
};

// Whether one of the scatter/gather elements of a work request names the region.
inline bool NamesRegion(const ibv_sge* elements, unsigned count, const RegionInfo& region) {
  for (unsigned i = 0; i < count; ++i) {
    if (elements[i].lkey == region.stag.value) return true;
  }
  return false;
}

// A request to bind a memory window (ibv_bind_mw, IBV_WR_BIND_MW).
struct WindowBind {
  ddp::STag window;      // the window, under the key that it is to have
  ddp::STag region;      // lkey of the region
  uint64_t address = 0;  // first byte, as the region's users address it
  uint64_t length = 0;   // 0: unbind (type 1)
  int access = 0;        // IBV_ACCESS_REMOTE_*, IBV_ACCESS_ZERO_BASED
};

// All memory regions and windows of the RNIC by STag (RFC 5042 section 6.2: STags are not predictable and one that was freed does
// not come back soon). Thread safe; a look-up takes one short lock of the slot.
class MemoryTable {
 public:
  MemoryTable();
  ~MemoryTable();

  // Errors (errno): EINVAL (access flags that contradict each other, a range that wraps), EFAULT (not mapped, or not writable
  // although the access asks for it), ENOMEM (no slot). With IBV_ACCESS_ON_DEMAND the memory is looked at with each access instead,
  // and `address` 0 with `length` SIZE_MAX is all of the address space.
  Result<RegionInfo, int> Register(Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access);
  // The same of a region that there is, whose STag stays (ibv_rereg_mr). On an error it is as it was; also ENOENT (unknown) and EBUSY
  // (windows are bound to it). What streams hold of the old memory is forgotten through Rnic::ReregisterMemory.
  // `*was`, if wanted here and below: what could be reached until now.
  Result<RegionInfo, int> Reregister(ddp::STag stag, Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access,
                                     RegionInfo* was = nullptr);
  // ibv_alloc_null_mr: a local key whose memory reads as zeroes and swallows what is written, of any address and up to kMaxMessage
  // bytes. ENOMEM.
  Result<RegionInfo, int> RegisterNull(Pd& pd);
  // After return no new look-up succeeds; memory that streams hold is forgotten through Rnic::DeregisterMemory. 0, ENOENT (unknown)
  // or EBUSY (windows are bound to it).
  int Deregister(ddp::STag stag, RegionInfo* was = nullptr);
  // What is known of a region by its lkey; nullopt: nothing, or it belongs to another domain.
  std::optional<RegionInfo> Find(const Pd& pd, uint32_t lkey);

  // A window of the domain, not bound yet. ENOMEM.
  Result<ddp::STag, int> AllocateWindow(Pd& pd, ibv_mw_type type);
  // Unbinds, too. `stag`: any key that the window has had. False: unknown.
  bool DeallocateWindow(ddp::STag stag, RegionInfo* was = nullptr);
  // False: refused, and the window is as it was. A window of type 1 takes the place of what it was bound to; one of type 2 must not be
  // bound, and is then for `owner` alone (type 2B). `was->length` is 0 if it was not bound.
  bool BindWindow(const Pd& pd, WindowOwner owner, const WindowBind& bind, RegionInfo* was = nullptr);

  // Memory for a tagged access by the peer (RFC 5040 section 5, RFC 5041 section 5). `*region`, if wanted: what the memory belongs to,
  // `stag` itself unless that is a window.
  Result<uint8_t*, rdmap::AccessError> ResolveRemote(const Pd& pd, ddp::STag stag, uint64_t offset, uint32_t length, int access,
                                                     const MemoryUser& who = {}, ddp::STag* region = nullptr);
  // All of a region that is in memory for good: neither a window nor on demand. nullopt: there is none.
  std::optional<RegionInfo> FindOpen(const Pd& pd, ddp::STag stag, const MemoryUser& who);
  // Grows before anybody is asked to let go of a region: what was known of one before may not be true any more.
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  // Memory of a scatter/gather element of a work request. nullptr: invalid key, range or rights.
  uint8_t* ResolveLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write,
                        const MemoryUser& who = {});
  // The region of such an element, if it is one, with IBV_ACCESS_ON_DEMAND or without; nullopt: ResolveLocal() knows what it is.
  std::optional<RegionInfo> FindLocal(const Pd& pd, uint32_t lkey, const MemoryUser& who);
  // Why ResolveLocal() refused, with what the region is, in words for a program's author; empty: it would not.
  std::string ExplainLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write);
  // Local invalidate: the STag stays allocated but is refused from now on. False: it cannot be: unknown, a region to which windows are
  // bound, a window of type 1 or of another owner.
  bool Invalidate(const Pd& pd, ddp::STag stag, WindowOwner owner = kNoWindowOwner, RegionInfo* was = nullptr);
  // The same for a peer's Send with Invalidate. Only a window of type 2 is made for one stream, and only of that stream it may be: a
  // region is for all queue pairs of its domain, and its key is the program's own lkey besides ("not able to invalidate an STag [...]
  // shared on multiple streams", RFC 5040 section 8.1.1, item 7; adapters and the kernel's rxe refuse it, too). nullopt: it was.
  std::optional<rdmap::AccessError> InvalidateForPeer(const Pd& pd, ddp::STag stag, WindowOwner owner, RegionInfo* was = nullptr);

 private:
  struct Slot;
  enum class Kind : uint8_t { kRegion, kNull, kWindow1, kWindow2 };
  static constexpr uint32_t kSlotsPerChunk = 4096;
  static constexpr uint32_t kChunks = 256;

  static bool IsWindow(Kind kind) { return kind == Kind::kWindow1 || kind == Kind::kWindow2; }
  // Whether a region may be made so, and its memory is there: 0 or an errno of Register().
  static int CheckRegion(uint64_t address, uint64_t length, uint64_t offset, int access);
  Slot* Find(ddp::STag stag);
  // A slot nobody uses, with a fresh key; nullptr: none is left.
  Slot* TakeSlot();
  void ReturnSlot(ddp::STag stag);
  // Memory at `offset` of what the slot said, if it is there.
  static Result<uint8_t*, rdmap::AccessError> Locate(const RegionInfo& info, uint64_t offset, uint32_t length, int access);
  // With windows_mutex_ held.
  bool BindToRegion(const Pd& pd, const WindowBind& bind, RegionInfo* bound);
  void LeaveRegion(ddp::STag region, MemoryUsers users);
  static void Tell(RegionInfo* was, const Slot& slot);  // with the slot's lock
  uint32_t Scramble(uint32_t slot) const;    // 24-bit bijections, keyed per process
  uint32_t Unscramble(uint32_t index) const;

  std::array<std::atomic<Slot*>, kChunks> chunks_{};  // release when it is made, acquire at each look-up
  std::atomic<uint64_t> changes_{1};  // grows before a queue pair is asked to let go, which then sees it by its own lock
  std::array<uint32_t, 4> keys_;
  std::mutex windows_mutex_;          // one at a time binds, unbinds or deregisters; locked before slots
  std::mutex mutex_;                  // guards what follows
  std::vector<uint32_t> free_;        // ring of slots, oldest freed first
  size_t free_front_ = 0;
  uint32_t slots_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_MEMORY_H_
