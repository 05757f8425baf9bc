#ifndef MPI_HYBRID_P2P_PARTITIONED_H_
#define MPI_HYBRID_P2P_PARTITIONED_H_

#include <vector>

#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/request/request.h"

namespace weft::mpi {

// Partitioned communication (MPI 4.0 chapter 4): a persistent request whose message is sent when all its partitions are
// ready, and whose partitions all arrive with it. Sends match receives in the order of their making among those of the
// same communicator, pair and tag, of which kMostPartitioned may be there at a time.
class PartitionedRequest : public Request {
 public:
  // `count` elements per partition.
  static PartitionedRequest* Make(bool is_send, void* buffer, int partitions, MPI_Aint count, const Datatype& type, int peer, int tag,
                                  Comm& comm);
  // Null: another kind of request.
  static PartitionedRequest* Of(Request* request);
  ~PartitionedRequest() override { Drop(); }

  bool is_send() const { return is_send_; }
  int partitions() const { return static_cast<int>(ready_.size()); }
  // MPI_Pready; MPI_ERR_ARG: out of range or ready already.
  Error Ready(int partition);

  Error Start() override;
  void InnerDone(Request& inner) override;

 private:
  PartitionedRequest() : Request(Kind::kPersistent) {}
  Error Launch();
  void Drop();

  bool is_send_ = false;
  void* buffer_ = nullptr;
  MPI_Aint count_ = 0;  // of all partitions together
  const Datatype* type_ = nullptr;
  Ref<const Datatype> type_reference_;
  int peer_ = 0, tag_ = 0;
  Channel channel_ = PartitionedChannel(0);
  std::vector<bool> ready_;
  int not_ready_ = 0;
  Request* inner_ = nullptr;
  bool held_ = false;
};

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_PARTITIONED_H_
