#ifndef MPI_HYBRID_RMA_INCOMING_H_
#define MPI_HYBRID_RMA_INCOMING_H_

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/rma/registration.h"
#include "mpi_hybrid/rma/wire.h"

namespace weft::mpi::rma {

// A connection that a peer has initiated.
struct Incoming {
  uint32_t index = 0;
  ProcessId process = 0;
  rdma_cm_id* id = nullptr;
  ibv_qp* qp = nullptr;
  uint32_t room = 0;         // number of messages that may be in flight, and of receives
  bool short_first = false;  // the first receive is one of kFirstBytes, and there is no other
  BufferPool::Buffer receives[kSlots];
  std::vector<uint32_t> sending;  // indices of reply buffers that are not known to be delivered
  uint32_t consumed = 0;
  uint32_t replies = 0;
  uint32_t inline_room = 0;
  uint32_t writing = 0;  // Writes of windows that the RNIC may not have placed yet
  std::string bad;  // why it must be dropped; empty: it is good

  ~Incoming();
};

// The connections of a Service, by number. Guarded by the service's mutex.
class IncomingTable {
 public:
  Incoming& Add(ProcessId process, rdma_cm_id* id);
  Incoming* Find(uint32_t index) const;  // null: it is gone
  // Removes the connection; its place is free from now on.
  std::unique_ptr<Incoming> Take(const Incoming& incoming);
  // By place; null: the place is free.
  const std::vector<std::unique_ptr<Incoming>>& places() const { return places_; }

  // Receives and sends nothing more on the connection, which stays among the dropped ones until TakeFromDropped.
  void Drop(Incoming& incoming, const std::string& why);
  bool any_dropped() const { return !dropped_.empty(); }
  Incoming& NextDropped();
  void TakeFromDropped(const Incoming& incoming) { std::erase(dropped_, incoming.index); }

 private:
  static constexpr uint32_t kPlaceBits = 20, kPlaceMask = (1u << kPlaceBits) - 1;
  std::vector<std::unique_ptr<Incoming>> places_;  // by the low bits of the index
  uint32_t made_ = 0;                              // number of connections so far
  std::vector<uint32_t> dropped_;                  // indices
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_INCOMING_H_
