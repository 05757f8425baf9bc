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

// Memory of the program that RDMA operations under way read or fill.
struct Registration {
  ibv_mr* mr = nullptr;
  uintptr_t first = 0, last = 0;  // [first, last), whole pages
  bool sink = false;              // of RDMA Reads
  int users = 0;
  bool cached = false;
};

// Registers origin buffers, and remembers them where that is safe: an RNIC that resolves addresses when it moves data
// (Weft) does not mind that the program unmaps and maps memory meanwhile; one that pins pages would go on with the old
// ones, so there a registration lasts as long as its operations. Guarded by the library's lock.
class Registrations {
 public:
  // `remember`: keeps registrations. The domain outlives this object, or Clear() comes first.
  Registrations(ibv_pd* domain, bool remember) : domain_(domain), remember_(remember) {}
  ~Registrations() { Clear(); }
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // One use of [address, address + bytes), to be given back by Release. `sink`: an RDMA Read fills it. Null: the RNIC
  // refuses (unmapped pages, no memory).
  Registration* Acquire(const void* address, size_t bytes, bool sink);
  void Release(Registration* registration);
  // Deregisters everything that is not in use.
  void Clear();

 private:
  void Forget(Registration* registration);

  ibv_pd* const domain_;
  const bool remember_;
  std::list<Registration> used_last_;  // cached ones: most recently used first
  struct Entry {
    std::list<Registration>::iterator at;
  };
  std::multimap<uintptr_t, Entry> by_first_;
};

// Registered buffers of one size, a chunk of them at a time as use grows, each handed out again as soon as it comes
// back. An RNIC pins what is registered, so that a buffer is memory in use whether anything was written to it or not.
// The owner guards it.
class BufferPool {
 public:
  struct Buffer {
    uint8_t* bytes = nullptr;  // null: none
    uint32_t key = 0;          // local
    uint32_t index = 0;        // of the pool, for at()
  };

  // `access` is ibv_reg_mr's. The domain outlives this object.
  BufferPool(ibv_pd* domain, size_t bytes, size_t per_chunk, size_t most, int access)
      : domain_(domain), bytes_(bytes), per_chunk_(per_chunk), most_(most), access_(access) {}
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  // None: all that there may be are in use, or there is no memory, or the RNIC refuses.
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
    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE;  // iWARP: the answer of a Read is written by the peer

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REGISTRATION_H_
