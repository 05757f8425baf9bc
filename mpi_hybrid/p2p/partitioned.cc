#include "mpi_hybrid/p2p/partitioned.h"

#include <string>

namespace weft::mpi {

PartitionedRequest* PartitionedRequest::Make(bool is_send, void* buffer, int partitions, MPI_Aint count, const Datatype& type, int peer,
                                             int tag, Comm& comm) {
  const Channel channel = PartitionedChannel(comm.partitioned[{is_send, peer, tag}]++);
  return new PartitionedRequest({is_send, buffer, count * partitions, &type, peer, tag, SendMode::kStandard, channel}, partitions, comm);
}

PartitionedRequest* PartitionedRequest::Of(Request* request) { return dynamic_cast<PartitionedRequest*>(request); }

Error PartitionedRequest::Start() {
  Renew();
  ready_.assign(ready_.size(), false);
  not_ready_ = partitions();
  return is_send() && not_ready_ != 0 ? Error() : Launch();
}

Error PartitionedRequest::Ready(int partition) {
  if (!active || complete || !is_send()) {
    return Error(MPI_ERR_REQUEST, "the request is not a started partitioned send with partitions that are not ready");
  }
  if (partition < 0 || partition >= partitions()) {
    return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) + " is not one of " + std::to_string(partitions()));
  }
  if (ready_[static_cast<size_t>(partition)]) return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) + " is ready already");
  ready_[static_cast<size_t>(partition)] = true;
  return --not_ready_ == 0 ? Launch() : Error();
}

}  // namespace weft::mpi
