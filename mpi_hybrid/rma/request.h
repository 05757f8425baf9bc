#ifndef MPI_HYBRID_RMA_REQUEST_H_
#define MPI_HYBRID_RMA_REQUEST_H_

#include <utility>

#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi::rma {

// A request of MPI_Rput, MPI_Rget, MPI_Raccumulate or MPI_Rget_accumulate. It completes when all parts of the operation
// have. The issuer holds one part while it adds the others.
class RmaRequest : public Request {
 public:
  RmaRequest() : Request(Kind::kRma) { status = EmptyStatus(); }

  void AddPart() { ++parts_; }
  void PartDone(Error part = {}) {
    if (!part.ok() && error.ok()) error = std::move(part);
    if (--parts_ > 0) return;
    Complete();
    Release();  // the operation's reference
  }

 private:
  int parts_ = 1;
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_REQUEST_H_
