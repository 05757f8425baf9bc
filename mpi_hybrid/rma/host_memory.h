#ifndef MPI_HYBRID_RMA_HOST_MEMORY_H_
#define MPI_HYBRID_RMA_HOST_MEMORY_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>

#include "base/descriptor.h"
#include "base/job_secret.h"
#include "mpi_hybrid/host/sealed_memory.h"
#include "mpi_hybrid/host/segment.h"
#include "mpi_hybrid/rma/free_space.h"

namespace weft::mpi::rma {

// Memory of this process that other processes of its host can map. MPI_Alloc_mem returns such memory. A process makes
// it alone. It is a memory file (memfd) that is divided into spans, each with its own mapping. Small allocations share
// a span; a large one has a span of its own. When all allocations of a span have been freed, the span is unmapped and
// its pages return to the system. No offset of the file is used twice. Therefore a process that keeps a span mapped
// sees zeros and never the data of another allocation. When the process dies, the kernel frees the memory once no other
// process maps it.
//
// After a fork the child has the same memory, as with all shared memory. It must neither allocate nor free any of it.
//
// Call with the library's lock held.
class HostMemory {
 public:
  // Describes a span to other processes. Values that came from another process are a claim, which MappedSpan checks.
  struct Span {
    int32_t fd = -1;  // of the process that owns it; -1: no span
    Nonce cookie{};   // the file's first bytes
    uint64_t at = 0, bytes = 0;
  };
  // Keeps an allocation in place, even after it is freed, as long as this object lives.
  class Use {
   public:
    Use() = default;
    ~Use() { Reset(); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

    explicit operator bool() const { return owner_ != nullptr; }
    const Span& span() const { return span_; }
    uint64_t offset() const { return offset_; }  // of the memory passed to Find, in the span
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

  // The only one of this process; never destroyed.
  static HostMemory& OfThisProcess();

  // Allocates `bytes` (if 0, a few) at a multiple of `alignment`, a power of two of at least kUnit. Null: there is no
  // descriptor, no address space or not enough memory; files are limited in length (ulimit -f); or this process is a
  // forked child.
  void* Take(size_t bytes, size_t alignment);
  // Frees what Take returned. False: `memory` did not come from Take.
  bool Give(void* memory);
  // True, and sets `use`, which must be empty: the `bytes` bytes from `memory` on belong to one allocation.
  bool Find(const void* memory, size_t bytes, Use* use);

  // bytes: allocations begin and end at multiples, so that no two share a cache line
  static constexpr size_t kUnit = 64;
  static constexpr size_t kSharedSpan = size_t{4} << 20;  // bytes of a span for many allocations
  // allocations of this many bytes or more have a span of their own
  static constexpr size_t kOwnSpan = size_t{1} << 20;

 private:
  struct Mapped {
    uint64_t at = 0;  // in the file
    bool for_many = false;
    host::Mapping mapping;
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

  pid_t process_ = 0;  // the process that made the file
  Descriptor file_;
  Nonce cookie_{};
  uint64_t next_ = 0;  // offset of the next span
  std::list<Mapped> spans_;
  Allocations allocations_;  // by their first byte
};

// A span of another process, mapped once in this process for all of its users.
class MappedSpan {
 public:
  // Null: it cannot be mapped, it differs from what `span` says, or this process already has kMost of them.
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
  host::SealedMemory segment_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_HOST_MEMORY_H_
