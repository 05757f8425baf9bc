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

// A connection of which a peer is the initiator.
struct Incoming {
  uint32_t index = 0;
  ProcessId process = 0;
  rdma_cm_id* id = nullptr;
  ibv_qp* qp = nullptr;
  uint32_t room = 0;         // messages that may be in flight, and receives
  bool short_first = false;  // the first receive is of kFirstBytes; there is no other
  BufferPool::Buffer receives[kSlots];
  std::vector<uint32_t> sending;  // indices of buffers of replies that are not known to be delivered
  uint32_t consumed = 0;
  uint32_t replies = 0;
  uint32_t inline_room = 0;
  uint32_t writing = 0;  // Writes from windows that the RNIC may not have taken yet
  std::string bad;  // why it is to be dropped

  ~Incoming();
};

// The connections of a Service, by number. Guarded by its mutex.
class IncomingTable {
 public:
  Incoming& Add(ProcessId process, rdma_cm_id* id);
  Incoming* Find(uint32_t index) const;  // null: gone
  // The place is free from now on.
  std::unique_ptr<Incoming> Take(const Incoming& incoming);
  // By place; null: free.
  const std::vector<std::unique_ptr<Incoming>>& places() const { return places_; }

  // Nothing more is received or sent; the connection is among the dropped ones until it is taken from them.
  void Drop(Incoming& incoming, const std::string& why);
  bool any_dropped() const { return !dropped_.empty(); }
  Incoming& NextDropped();
  void TakeFromDropped(const Incoming& incoming) { std::erase(dropped_, incoming.index); }

 private:
  static constexpr uint32_t kPlaceBits = 20, kPlaceMask = (1u << kPlaceBits) - 1;
  std::vector<std::unique_ptr<Incoming>> places_;  // by the low bits of the index
  uint32_t made_ = 0;                              // so far
  std::vector<uint32_t> dropped_;                  // indices
};

}  // namespace weft::mpi::rma

#endif  // MPI_HYBRID_RMA_INCOMING_H_
