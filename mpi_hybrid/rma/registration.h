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

// Registers origin buffers, and remembers them where that is safe: an RNIC that resolves addresses when it moves data (Weft) does
// not mind that the program unmaps and maps memory meanwhile; one that pins pages would go on with the old ones, so there a
// registration lasts as long as its operations. Guarded by the library's lock.
class Registrations {
 public:
  // `remember`: keeps registrations. The domain outlives this object, or Clear() comes first.
  Registrations(ibv_pd* domain, bool remember) : domain_(domain), remember_(remember) {}
  ~Registrations() { Clear(); }
  Registrations(const Registrations&) = delete;
  Registrations& operator=(const Registrations&) = delete;

  // One use of [address, address + bytes), to be given back by Release. `sink`: an RDMA Read fills it. Null: the RNIC refuses
  // (unmapped pages, no memory).
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

// Registered pieces of memory of kBytes for what cannot be registered or is scattered.
class BouncePool {
 public:
  static constexpr size_t kBytes = 65536;
  static constexpr size_t kBuffers = 32;
  struct Buffer {
    uint8_t* bytes = nullptr;
    uint32_t key = 0;
  };

  // False: no memory, or the RNIC refuses.
  bool Make(ibv_pd* domain);
  ~BouncePool();
  bool empty() const { return free_.empty(); }
  Buffer Take();  // not empty
  void Give(Buffer buffer) { free_.push_back(buffer); }

 private:
  std::vector<Buffer> free_;
  void* memory_ = nullptr;
  ibv_mr* mr_ = nullptr;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REGISTRATION_H_
