#include "mpi_hybrid/api/bindings.h"
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

#define WEFT_MPI_SEND_INIT(function, mode)                                                                           \
  WEFT_MPI_BOTH(                                                                                                     \
      function,                                                                                                      \
      (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request), \
      SendInit(name, SendMode::mode, {buf, count, datatype, dest, tag}, comm, request))

WEFT_MPI_SEND_INIT(Send_init, kStandard)
WEFT_MPI_SEND_INIT(Ssend_init, kSynchronous)
WEFT_MPI_SEND_INIT(Rsend_init, kReady)
WEFT_MPI_SEND_INIT(Bsend_init, kBuffered)

WEFT_MPI_BOTH(Recv_init,
              (void* buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request),
              ReceiveInit(name, {buf, count, datatype, source, tag}, comm, request))

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
