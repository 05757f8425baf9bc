#ifndef MPI_HYBRID_RMA_HOST_MEMORY_H_
#define MPI_HYBRID_RMA_HOST_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "base/job_secret.h"
#include "mpi_hybrid/core/descriptor.h"
#include "mpi_hybrid/rma/free_space.h"
#include "mpi_hybrid/rma/host_segment.h"
#include "mpi_hybrid/shm/node_segment.h"

namespace weft::mpi::rma {

// Memory of this process that others of its host can map: what MPI_Alloc_mem returns. A process makes it alone. It is a memory file (memfd) that is cut
// into spans. A span has its own mapping; small allocations share one, a large one has one of its own. A span whose allocations are all
// given back is unmapped and its pages go back to the system; no offset of the file is given out twice, so that who has a span mapped for
// longer sees zeros and never another one's data. When the process dies the kernel takes the memory back, once no other has it mapped.
//
// Fork: the child has the same memory, as it does of all memory that is shared. It takes nothing from it and gives nothing back.
//
// With the library's lock.
class HostMemory {
 public:
  // How another process maps a span. What it says of another process is a claim: MappedSpan checks it.
  struct Span {
    int32_t fd = -1;  // of the process that owns it; -1: there is none
    Nonce cookie{};   // the file's first bytes
    uint64_t at = 0, bytes = 0;
  };
  // An allocation that stays what it is, given back or not, as long as this lives.
  class Use {
   public:
    Use() = default;
    ~Use() { Reset(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    explicit operator bool() const { return owner_ != nullptr; }
    const Span& span() const { return span_; }
    uint64_t offset() const { return offset_; }  // in the span, of the memory that Find was asked for
    void Reset();

   private:
    friend class HostMemory;
    HostMemory* owner_ = nullptr;
    uintptr_t allocation_ = 0;
    Span span_;
    uint64_t offset_ = 0;
  };

  HostMemory() = default;
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  // Of all of this process; never destroyed.
  static HostMemory& OfThisProcess();

  // `bytes`, or a few if that is 0, at a multiple of `alignment`, a power of two of at least kUnit. Null: there is no descriptor, no address space, or less memory,
  // files are limited in length (ulimit -f), or this process is a forked child.
  void* Take(size_t bytes, size_t alignment);
  // What Take returned. False: it did not.
  bool Give(void* memory);
  // True and `use`, which holds none yet: the `bytes` from `memory` on are of one allocation.
  bool Find(const void* memory, size_t bytes, Use* use);

  static constexpr size_t kUnit = 64;                   // bytes: allocations begin and end at multiples, so that no two share a cache line
  static constexpr size_t kSharedSpan = size_t{4} << 20;  // bytes of a span for many allocations
  static constexpr size_t kOwnSpan = size_t{1} << 20;     // from so many bytes on an allocation has a span of its own

 private:
  struct Mapped {
    uint64_t at = 0;  // in the file
    bool for_many = false;
    shm::Mapping mapping;
    FreeSpace space;
  };
  struct Allocation {
    size_t bytes = 0;
    std::list<Mapped>::iterator span;
    bool given_back = false;
    int uses = 0;
  };
  using Allocations = std::map<uintptr_t, Allocation>;

  bool Open();
  bool AddSpan(size_t bytes, bool for_many);
  void Settle(Allocations::iterator allocation);

  pid_t process_ = 0;  // that made the file
  Descriptor file_;
  Nonce cookie_{};
  uint64_t next_ = 0;  // offset of the next span
  std::list<Mapped> spans_;
  Allocations allocations_;  // by their first byte
};

// A span of another process, mapped here once for all who use it.
class MappedSpan {
 public:
  // Null: it cannot be had, it is not what `span` says, or this process has kMost of them.
  static std::shared_ptr<MappedSpan> Find(pid_t pid, const HostMemory::Span& span);
  ~MappedSpan();
  MappedSpan(const MappedSpan&) = delete;
  MappedSpan& operator=(const MappedSpan&) = delete;

  uint8_t* data() const { return segment_.data(); }
  size_t size() const { return segment_.size(); }

  static constexpr size_t kMost = 16384;  // Linux allows a process 65,530 mappings, most of which are the program's

 private:
  struct Key {
    pid_t pid;
    Nonce cookie;
    uint64_t at, bytes;
    auto operator<=>(const Key&) const = default;
  };
  MappedSpan(const Key& key) : key_(key) {}
  static std::map<Key, std::weak_ptr<MappedSpan>>& All();

  const Key key_;
  HostSegment segment_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_MEMORY_H_
