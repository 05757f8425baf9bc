#ifndef MPI_HYBRID_P2P_PARTITIONED_H_
#define MPI_HYBRID_P2P_PARTITIONED_H_

#include <vector>

#include "mpi_hybrid/p2p/persistent.h"

namespace weft::mpi {

// Partitioned communication (MPI 4.0 chapter 4): a persistent request whose message is sent when all its partitions are
// ready, and whose partitions all arrive with it. Sends match receives in the order of their making among those of the
// same communicator, pair and tag, of which kMostPartitioned may be there at a time.
class PartitionedRequest : public PersistentRequest {
 public:
  // `count` elements per partition.
  static PartitionedRequest* Make(bool is_send, void* buffer, int partitions, MPI_Aint count, const Datatype& type, int peer, int tag,
                                  Comm& comm);
  // Null: another kind of request.
  static PartitionedRequest* Of(Request* request);

  int partitions() const { return static_cast<int>(ready_.size()); }
  // MPI_Pready; MPI_ERR_ARG: out of range or ready already.
  Error Ready(int partition);

  Error Start() override;
  Error Cancel() override { return {}; }  // not for these (MPI 4.0 section 4.2)

 private:
  PartitionedRequest(const RepeatedMessage& message, int partitions, Comm& comm)
      : PersistentRequest(message, comm), ready_(static_cast<size_t>(partitions)) {}

  std::vector<bool> ready_;
  int not_ready_ = 0;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PARTITIONED_H_
