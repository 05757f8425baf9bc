#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/p2p/partitioned.h"
#include "mpi_hybrid/p2p/progress.h"

// Partitioned communication (MPI 4.0 chapter 4).
namespace weft::mpi {
namespace {

int MakePartitioned(const char* name, bool is_send, void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    if (partitions < 0) return Error(MPI_ERR_ARG, "partitions " + std::to_string(partitions) + " is negative");
    const Datatype* type;
    WEFT_MPI_TRY(CheckSendRank(peer, c));  // no wild cards on either side
    WEFT_MPI_TRY(CheckSendTag(tag));
    WEFT_MPI_TRY(FindData(buffer, partitions == 0 ? 0 : count, datatype, &type));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    *request = Request::Give(PartitionedRequest::Make(is_send, buffer, partitions, count, *type, peer, tag, c));
    return {};
  });
}

Error FindPartitioned(MPI_Request handle, PartitionedRequest** request) {
  *request = PartitionedRequest::Of(Request::Find(handle));
  return *request != nullptr ? Error() : Error(MPI_ERR_REQUEST, "the request is not one of partitioned communication");
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Psend_init(const void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Info,
                    MPI_Request* request) {
  return MakePartitioned("MPI_Psend_init", true, const_cast<void*>(buf), partitions, count, datatype, dest, tag, comm, request);
}
WEFT_MPI_ALIAS(Psend_init)

int PMPI_Precv_init(void* buf, int partitions, MPI_Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Info,
                    MPI_Request* request) {
  return MakePartitioned("MPI_Precv_init", false, buf, partitions, count, datatype, dest, tag, comm, request);
}
WEFT_MPI_ALIAS(Precv_init)

int PMPI_Pready(int partition, MPI_Request request) {
  return Anywhere("MPI_Pready", [&]() -> Error {
    PartitionedRequest* found;
    WEFT_MPI_TRY(FindPartitioned(request, &found));
    return found->Ready(partition);
  });
}
WEFT_MPI_ALIAS(Pready)

int PMPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  return Anywhere("MPI_Pready_range", [&]() -> Error {
    PartitionedRequest* found;
    WEFT_MPI_TRY(FindPartitioned(request, &found));
    for (int partition = partition_low; partition <= partition_high; ++partition) WEFT_MPI_TRY(found->Ready(partition));
    return {};
  });
}
WEFT_MPI_ALIAS(Pready_range)

int PMPI_Pready_list(int length, int array_of_partitions[], MPI_Request request) {
  return Anywhere("MPI_Pready_list", [&]() -> Error {
    PartitionedRequest* found;
    WEFT_MPI_TRY(FindPartitioned(request, &found));
    if (length > 0) WEFT_MPI_TRY(CheckNotNull(array_of_partitions, "array_of_partitions"));
    for (int i = 0; i < length; ++i) WEFT_MPI_TRY(found->Ready(array_of_partitions[i]));
    return {};
  });
}
WEFT_MPI_ALIAS(Pready_list)

int PMPI_Parrived(MPI_Request request, int partition, int* flag) {
  return Anywhere("MPI_Parrived", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    PartitionedRequest* found;
    WEFT_MPI_TRY(FindPartitioned(request, &found));
    if (found->is_send()) return Error(MPI_ERR_REQUEST, "the request is a partitioned send");
    if (partition < 0 || partition >= found->partitions()) {
      return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) + " is not one of " + std::to_string(found->partitions()));
    }
    if (!found->complete) Progress::PollForTest();
    *flag = found->complete;
    return {};
  });
}
WEFT_MPI_ALIAS(Parrived)
