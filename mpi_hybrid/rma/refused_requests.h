#ifndef MPI_HYBRID_RMA_REFUSED_REQUESTS_H_
#define MPI_HYBRID_RMA_REFUSED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Requests for a connection that the target refused for want of room, of origins that have none yet. They are proved, so that a process that read one from the network
// could send it again. An origin counts its requests (CountedNonce): of each the newest one stands for all before it.
class RefusedRequests {
 public:
  void Add(ProcessId origin, const Nonce& nonce) { newest_[origin] = CountOf(nonce); }
  // It is one of them, or an older one that came late.
  bool Includes(ProcessId origin, const Nonce& nonce) const {
    const auto newest = newest_.find(origin);
    return newest != newest_.end() && CountOf(nonce) <= newest->second;
  }
  void Forget(ProcessId origin) { newest_.erase(origin); }
  size_t size() const { return newest_.size(); }

 private:
  std::map<ProcessId, uint64_t> newest_;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REFUSED_REQUESTS_H_
