#include "mpi_hybrid/api/message_arguments.h"

namespace weft::mpi {

Error each::FindData(const void* buffer, MPI_Count count, MPI_Datatype datatype, const Datatype** type) {
  WEFT_MPI_TRY(CheckCount(count));
  WEFT_MPI_TRY(FindTypeOfData(count, datatype, type));
  return CheckBuffer(buffer, count, **type);
}

Error each::FindSend(SendArguments& send, const Comm& comm) {
  WEFT_MPI_TRY(CheckCount(send.count));
  WEFT_MPI_TRY(CheckSendRank(send.destination, comm));
  WEFT_MPI_TRY(CheckSendTag(send.tag));
  return each::FindData(send.buffer, send.count, send.datatype, &send.type);
}

Error each::FindReceive(ReceiveArguments& receive, const Comm& comm) {
  WEFT_MPI_TRY(CheckCount(receive.count));
  WEFT_MPI_TRY(CheckReceiveRank(receive.source, comm));
  WEFT_MPI_TRY(CheckReceiveTag(receive.tag));
  return each::FindData(receive.buffer, receive.count, receive.datatype, &receive.type);
}

}  // namespace weft::mpi
