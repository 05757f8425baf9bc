#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/p2p/message.h"

// Persistent sends and receives (MPI 4.0 section 3.9); MPI_Start starts those of collectives and of partitioned communication too.
namespace weft::mpi {
namespace {

int SendInit(const char* name, SendMode mode, SendArguments send, MPI_Comm comm, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindSend(send, c));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* made;
    WEFT_MPI_TRY(MakePersistentSend(send.buffer, send.count, *send.type, send.destination, send.tag, c, mode, &made));
    *request = Request::Give(made);
    return {};
  });
}

int ReceiveInit(const char* name, ReceiveArguments receive, MPI_Comm comm, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindReceive(receive, c));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* made;
    WEFT_MPI_TRY(MakePersistentReceive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, c, &made));
    *request = Request::Give(made);
    return {};
  });
}

Error FindStartable(MPI_Request handle, Request** request) {
  *request = Request::Find(handle);
  if (*request == nullptr) return Error(MPI_ERR_REQUEST, "the request is MPI_REQUEST_NULL or none");
  if (!(*request)->persistent) return Error(MPI_ERR_REQUEST, "the request is not a persistent one");
  if ((*request)->active) return Error(MPI_ERR_REQUEST, "the persistent request is active already");
  return {};
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

#define WEFT_SEND_INIT(function, count_type, mode)                                                                \
  int PMPI_##function(const void* buf, count_type count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, \
                      MPI_Request* request) {                                                                     \
    return SendInit("MPI_" #function, SendMode::mode, {buf, count, datatype, dest, tag}, comm, request);          \
  }                                                                                                               \
  WEFT_MPI_ALIAS(function)

WEFT_SEND_INIT(Send_init, int, kStandard)
WEFT_SEND_INIT(Send_init_c, MPI_Count, kStandard)
WEFT_SEND_INIT(Ssend_init, int, kSynchronous)
WEFT_SEND_INIT(Ssend_init_c, MPI_Count, kSynchronous)
WEFT_SEND_INIT(Rsend_init, int, kReady)
WEFT_SEND_INIT(Rsend_init_c, MPI_Count, kReady)
WEFT_SEND_INIT(Bsend_init, int, kBuffered)
WEFT_SEND_INIT(Bsend_init_c, MPI_Count, kBuffered)

int PMPI_Recv_init(void* buf, int count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return ReceiveInit("MPI_Recv_init", {buf, count, datatype, source, tag}, comm, request);
}
WEFT_MPI_ALIAS(Recv_init)

int PMPI_Recv_init_c(void* buf, MPI_Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request) {
  return ReceiveInit("MPI_Recv_init_c", {buf, count, datatype, source, tag}, comm, request);
}
WEFT_MPI_ALIAS(Recv_init_c)

int PMPI_Start(MPI_Request* request) {
  return Anywhere("MPI_Start", [&]() -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* found;
    WEFT_MPI_TRY(FindStartable(*request, &found));
    return found->Start();
  });
}
WEFT_MPI_ALIAS(Start)

int PMPI_Startall(int count, MPI_Request array_of_requests[]) {
  return Anywhere("MPI_Startall", [&]() -> Error {
    WEFT_MPI_TRY(CheckCount(count));
    if (count != 0) WEFT_MPI_TRY(CheckNotNull(array_of_requests, "array_of_requests"));
    for (int i = 0; i < count; ++i) {
      Request* found;
      WEFT_MPI_TRY(FindStartable(array_of_requests[i], &found));
    }
    for (int i = 0; i < count; ++i) WEFT_MPI_TRY(Request::Find(array_of_requests[i])->Start());
    return {};
  });
}
WEFT_MPI_ALIAS(Startall)
