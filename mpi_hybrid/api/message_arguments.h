#ifndef MPI_HYBRID_API_MESSAGE_ARGUMENTS_H_
#define MPI_HYBRID_API_MESSAGE_ARGUMENTS_H_

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {

// One side of a message as the program gives it; checked by FindSend and FindReceive, which set `type`.
struct SendArguments {
  const void* buffer;
  MPI_Count count;
  MPI_Datatype datatype;
  int destination;
  int tag;
  const Datatype* type = nullptr;
};
struct ReceiveArguments {
  void* buffer;
  MPI_Count count;
  MPI_Datatype datatype;
  int source;
  int tag;
  const Datatype* type = nullptr;
};

// A committed type and a buffer for `count` of it. MPI_DATATYPE_NULL, but of nothing, and uncommitted types:
// MPI_ERR_TYPE.
inline Error FindData(const void* buffer, MPI_Count count, MPI_Datatype datatype, const Datatype** type) {
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindTypeOfData(count, datatype, type));
  return CheckBuffer(buffer, count, **type);
}

inline Error FindSend(SendArguments& send, const Comm& comm) {
  WEFT_MPI_TRY(CheckCount(send.count));
  WEFT_MPI_TRY(CheckSendRank(send.destination, comm));
  WEFT_MPI_TRY(CheckSendTag(send.tag));
  return FindData(send.buffer, send.count, send.datatype, &send.type);
}

inline Error FindReceive(ReceiveArguments& receive, const Comm& comm) {
  WEFT_MPI_TRY(CheckCount(receive.count));
  WEFT_MPI_TRY(CheckReceiveRank(receive.source, comm));
  WEFT_MPI_TRY(CheckReceiveTag(receive.tag));
  return FindData(receive.buffer, receive.count, receive.datatype, &receive.type);
}

// All but MPI_ERROR, which only calls that return several statuses set (MPI 4.0 section 3.2.5).
inline void SetStatus(MPI_Status* to, const MPI_Status& status) {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = status;
  to->MPI_ERROR = error;
}

// Where a status is to go: MPI_STATUS_IGNORE or not null.
inline Error CheckStatus(const MPI_Status* status) { return CheckNotNull(status, "status"); }

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_MESSAGE_ARGUMENTS_H_
