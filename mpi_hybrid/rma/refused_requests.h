#ifndef MPI_HYBRID_RMA_REFUSED_REQUESTS_H_
#define MPI_HYBRID_RMA_REFUSED_REQUESTS_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "mpi_hybrid/core/process_table.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// Connection requests that the target has refused for lack of resources, of origins that are not connected yet. A
// request carries a valid proof, so a process that has read one from the network could replay it. An origin numbers its
// requests (CountedNonce): the newest one of each origin stands for all earlier ones.
class RefusedRequests {
 public:
  void Add(ProcessId origin, const Nonce& nonce) { newest_[origin] = CountOf(nonce); }
  // Whether the request is one of them, or an older one that arrived late.
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
