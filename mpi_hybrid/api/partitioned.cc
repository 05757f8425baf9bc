#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/coll/spanning.h"
#include "mpi_hybrid/p2p/partitioned.h"
#include "mpi_hybrid/p2p/progress.h"

// Partitioned communication (MPI 4.0 chapter 4).
namespace weft::mpi {
namespace {

int MakePartitioned(const char* name, bool is_send, void* buffer, int partitions, MPI_Count count, MPI_Datatype datatype, int peer, int tag,
                    MPI_Comm comm, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    if (partitions < 0) return Error(MPI_ERR_ARG, "partitions " + std::to_string(partitions) + " is negative");
    WEFT_MPI_TRY(CheckSendRank(peer, c));  // no wild cards on either side
    WEFT_MPI_TRY(CheckSendTag(tag));
    WEFT_MPI_TRY(CheckWithinClient(c, "partitioned messages"));
    WEFT_MPI_TRY(CheckCount(count));
    MPI_Count all;
    if (__builtin_mul_overflow(count, partitions, &all)) {
      return Error(MPI_ERR_COUNT, std::to_string(partitions) + " partitions of " + std::to_string(count) + " elements are too many");
    }
    PartitionedData data{buffer, partitions, count, nullptr, peer, tag};
    WEFT_MPI_TRY(FindData(buffer, all, datatype, &data.type));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* made;
    if (is_send) {
      WEFT_MPI_TRY(PartitionedSend::Make(data, c, &made));
    } else {
      made = PartitionedReceive::Make(data, c);
    }
    *request = Request::Give(made);
    return {};
  });
}

// `Kind`: PartitionedSend or PartitionedReceive.
template <typename Kind>
Error FindPartitioned(MPI_Request handle, const char* other, Kind** request) {
  PartitionedRequest* const found = PartitionedRequest::Of(Request::Find(handle));
  if (found == nullptr) return Error(MPI_ERR_REQUEST, "the request is not one of partitioned communication");
  *request = dynamic_cast<Kind*>(found);
  return *request != nullptr ? Error() : Error(MPI_ERR_REQUEST, std::string("the request is a partitioned ") + other);
}

Error Ready(MPI_Request request, std::span<const int> partitions) {
  PartitionedSend* send;
  WEFT_MPI_TRY(FindPartitioned(request, "receive", &send));
  return send->Ready(partitions);
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
  return Anywhere("MPI_Pready", [&]() -> Error { return Ready(request, {&partition, 1}); });
}
WEFT_MPI_ALIAS(Pready)

int PMPI_Pready_range(int partition_low, int partition_high, MPI_Request request) {
  return Anywhere("MPI_Pready_range", [&]() -> Error {
    PartitionedSend* send;
    WEFT_MPI_TRY(FindPartitioned(request, "receive", &send));
    if (partition_low < 0 || partition_low > partition_high || partition_high >= send->data().partitions) {
      return Error(MPI_ERR_ARG, "partitions " + std::to_string(partition_low) + " to " + std::to_string(partition_high) +
                                    " are not a range of " + std::to_string(send->data().partitions));
    }
    std::vector<int> range(static_cast<size_t>(partition_high - partition_low) + 1);
    std::iota(range.begin(), range.end(), partition_low);
    return send->Ready(range);
  });
}
WEFT_MPI_ALIAS(Pready_range)

int PMPI_Pready_list(int length, int array_of_partitions[], MPI_Request request) {
  return Anywhere("MPI_Pready_list", [&]() -> Error {
    WEFT_MPI_TRY(CheckCount(length));
    if (length > 0) WEFT_MPI_TRY(CheckNotNull(array_of_partitions, "array_of_partitions"));
    return Ready(request, {array_of_partitions, static_cast<size_t>(length)});
  });
}
WEFT_MPI_ALIAS(Pready_list)

int PMPI_Parrived(MPI_Request request, int partition, int* flag) {
  return Anywhere("MPI_Parrived", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    PartitionedReceive* receive;
    WEFT_MPI_TRY(FindPartitioned(request, "send", &receive));
    if (partition < 0 || partition >= receive->data().partitions) {
      return Error(MPI_ERR_ARG, "partition " + std::to_string(partition) + " is not one of " + std::to_string(receive->data().partitions));
    }
    if (!receive->HasArrived(partition)) Progress::PollForTest();
    *flag = receive->HasArrived(partition);
    return {};
  });
}
WEFT_MPI_ALIAS(Parrived)
