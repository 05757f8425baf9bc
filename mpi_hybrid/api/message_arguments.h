#ifndef MPI_HYBRID_API_MESSAGE_ARGUMENTS_H_
#define MPI_HYBRID_API_MESSAGE_ARGUMENTS_H_

#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi {

// One side of a message as the program passed it. FindSend and FindReceive check it and set `type`.
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

// The same checks as FindData, FindSend and FindReceive, one argument after the other: for rare arguments and for
// errors.
namespace each {
Error FindData(const void* buffer, MPI_Count count, MPI_Datatype datatype, const Datatype** type);
Error FindSend(SendArguments& send, const Comm& comm);
Error FindReceive(ReceiveArguments& receive, const Comm& comm);
}  // namespace each

// The usual case without errors: the type is ready for use, and there are so few bytes that nothing overflows.
inline bool IsPlainLayout(MPI_Count count, const Datatype* type) {
  return type != nullptr && (type->committed || type->builtin) && static_cast<uint64_t>(count | type->size | type->extent) >> 26 == 0;
}
// The same, and there is a buffer.
inline bool IsPlainData(const void* buffer, MPI_Count count, const Datatype* type) { return buffer != nullptr && IsPlainLayout(count, type); }

// Checks for a committed type and a buffer of `count` elements. MPI_ERR_TYPE: the type is not committed, or is
// MPI_DATATYPE_NULL although count is not 0.
inline Error FindData(const void* buffer, MPI_Count count, MPI_Datatype datatype, const Datatype** type) {
  *type = Datatype::Find(datatype);
  if (IsPlainData(buffer, count, *type)) [[likely]] return {};
  return each::FindData(buffer, count, datatype, type);
}

inline Error FindSend(SendArguments& send, const Comm& comm) {
  send.type = Datatype::Find(send.datatype);
  if (IsPlainData(send.buffer, send.count, send.type) && send.destination >= 0 && send.destination < comm.remote_size() && send.tag >= 0 &&
      send.tag <= kLargestTag) [[likely]]
    return {};
  return each::FindSend(send, comm);
}

inline Error FindReceive(ReceiveArguments& receive, const Comm& comm) {
  receive.type = Datatype::Find(receive.datatype);
  if (IsPlainData(receive.buffer, receive.count, receive.type) && receive.source >= 0 && receive.source < comm.remote_size() &&
      receive.tag >= 0 && receive.tag <= kLargestTag) [[likely]]
    return {};
  return each::FindReceive(receive, comm);
}

// Sets all fields except MPI_ERROR, which only calls that return several statuses set (MPI 4.0 section 3.2.5).
inline void SetStatus(MPI_Status* to, const MPI_Status& status) {
  if (to == MPI_STATUS_IGNORE) return;
  const int error = to->MPI_ERROR;
  *to = status;
  to->MPI_ERROR = error;
}

// Checks the destination of a status: MPI_STATUS_IGNORE is allowed, null is not.
inline Error CheckStatus(const MPI_Status* status) { return CheckNotNull(status, "status"); }

}  // namespace weft::mpi

#endif  // MPI_HYBRID_API_MESSAGE_ARGUMENTS_H_
