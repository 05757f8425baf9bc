#ifndef SIM_MEMORY_H_
#define SIM_MEMORY_H_

#include <infiniband/verbs.h>
#include <sys/uio.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/result.h"
#include "ddp/types.h"
#include "rdmap/stream.h"

namespace weft::sim {

// Protection domain: an identity that regions and queue pairs share.
struct Pd {
  explicit Pd(uint32_t number) : id(number) {}
  const uint32_t id;
  std::atomic<int> users{0};  // regions and queue pairs; ibv_dealloc_pd is EBUSY while there are any
};

struct RegionInfo {
  ddp::STag stag;       // lkey and rkey
  uint64_t address = 0; // of its first byte, as the process sees it
  uint64_t offset = 0;  // tagged offset of its first byte (iova)
  uint64_t length = 0;
  int access = 0;       // IBV_ACCESS_*
};

// All memory regions of the RNIC by STag (RFC 5042 section 6.2: STags are not predictable and one that was freed does not come
// back soon). Thread safe; a look-up takes one short lock of the slot.
class MemoryTable {
 public:
  MemoryTable();
  ~MemoryTable();

  // Errors (errno): EINVAL (access flags that contradict each other, a range that wraps), EFAULT (not mapped, or not writable
  // although the access asks for it), ENOMEM (no slot).
  Result<RegionInfo, int> Register(Pd& pd, uint64_t address, uint64_t length, uint64_t offset, int access);
  // After return no new look-up succeeds; memory that streams hold is forgotten through Rnic::ForgetRegion. False: unknown.
  bool Deregister(ddp::STag stag);

  // Memory for a tagged access by the peer (RFC 5041 section 5.? and RFC 5040 section 5).
  Result<uint8_t*, rdmap::AccessError> ResolveRemote(const Pd& pd, ddp::STag stag, uint64_t offset, uint32_t length,
                                                     int access);
  // Memory of a scatter/gather element of a work request. nullptr: invalid key, range or rights.
  uint8_t* ResolveLocal(const Pd& pd, uint32_t lkey, uint64_t address, uint32_t length, bool write, bool remote_write);
  // Invalidates (Send with Invalidate, local invalidate): the STag stays allocated but is refused from now on.
  bool Invalidate(const Pd& pd, ddp::STag stag);

 private:
  struct Slot;
  static constexpr uint32_t kSlotsPerChunk = 4096;
  static constexpr uint32_t kChunks = 256;

  Slot* Find(ddp::STag stag);
  uint32_t Scramble(uint32_t slot) const;    // 24-bit bijections, keyed per process
  uint32_t Unscramble(uint32_t index) const;

  std::array<std::atomic<Slot*>, kChunks> chunks_{};
  std::array<uint32_t, 4> keys_;
  std::mutex mutex_;                  // guards the two below
  std::vector<uint32_t> free_;        // ring of slots, oldest freed first
  size_t free_front_ = 0;
  uint32_t slots_ = 0;
};

}  // namespace weft::sim

#endif  // SIM_MEMORY_H_
