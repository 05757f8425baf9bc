#ifndef MPI_HYBRID_RMA_REGISTRATION_H_
#define MPI_HYBRID_RMA_REGISTRATION_H_

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <vector>

namespace weft::mpi::rma {

// Memory of the program that pending RDMA operations read or fill.
struct Registration {
  ibv_mr* mr = nullptr;
  uintptr_t first = 0, last = 0;  // [first, last), whole pages
  bool sink = false;              // of RDMA Reads
  int users = 0;
  bool cached = false;
};

// Registers origin buffers, and caches the registrations if that is safe. It is safe with an RNIC that resolves
// addresses when it moves data (Weft), because the program may then unmap and map memory meanwhile. An RNIC that pins
// pages would continue to use the old pages; with it, a registration lasts only as long as its operations. Guarded by
// the library's lock.
class Registrations {
 public:
  // `remember`: caches registrations. The domain must outlive this object, or Clear() must be called first.
  Registrations(ibv_pd* domain, bool remember) : domain_(domain), remember_(remember) {}
  ~Registrations() { Clear(); }
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // Adds a use of [address, address + bytes), which Release ends. `sink`: an RDMA Read fills the memory. Null: the RNIC
  // refuses (unmapped pages, no memory).
  Registration* Acquire(const void* address, size_t bytes, bool sink);
  void Release(Registration* registration);
  // Deregisters all memory that is not in use.
  void Clear();

 private:
  void Forget(Registration* registration);

  ibv_pd* const domain_;
  const bool remember_;
  std::list<Registration> used_last_;  // cached ones, the most recently used first
  struct Entry {
    std::list<Registration>::iterator at;
  };
  std::multimap<uintptr_t, Entry> by_first_;
};

// Registered buffers of one size. The pool grows by a chunk of buffers when needed, and a returned buffer is used again
// first. An RNIC pins registered memory, so that a buffer takes memory even if it was never written. The owner of the
// pool guards it.
class BufferPool {
 public:
  struct Buffer {
    uint8_t* bytes = nullptr;  // null: none
    uint32_t key = 0;          // local
    uint32_t index = 0;        // in the pool, for at()
  };

  // `access`: as for ibv_reg_mr. The domain must outlive this object.
  BufferPool(ibv_pd* domain, size_t bytes, size_t per_chunk, size_t most, int access)
      : domain_(domain), bytes_(bytes), per_chunk_(per_chunk), most_(most), access_(access) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // A buffer without bytes: the limit is reached, there is no memory, or the RNIC refuses.
  Buffer Take();
  void Give(Buffer buffer) { free_.push_back(buffer); }
  Buffer at(uint32_t index) const;
  bool in_use() const { return free_.size() != chunks_.size() * per_chunk_; }

 private:
  struct Chunk {
    uint8_t* memory;
    ibv_mr* mr;
  };
  bool Grow();

  ibv_pd* const domain_;
  const size_t bytes_, per_chunk_, most_;
  const int access_;
  std::vector<Chunk> chunks_;
  std::vector<Buffer> free_;
};

constexpr int kSinkAccess =
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;  // iWARP: the peer writes the answer of a Read

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REGISTRATION_H_
