#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/p2p/exchange.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"

// Sends and receives, blocking and not (MPI 4.0 sections 3.2, 3.4, 3.7 and 3.10).
namespace weft::mpi {
namespace {

int BlockingSend(const char* name, SendMode mode, SendArguments send, MPI_Comm comm) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindSend(send, c));
    return Send(send.buffer, send.count, *send.type, send.destination, send.tag, c, mode, Channel::kPointToPoint);
  });
}

int NonblockingSend(const char* name, SendMode mode, SendArguments send, MPI_Comm comm, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindSend(send, c));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* started;
    if (mode == SendMode::kStandard && SendAtOnce(send.buffer, send.count, *send.type, send.destination, send.tag, c, Channel::kPointToPoint, &started)) {
      *request = started == nullptr ? Request::GiveDone() : Request::Give(started);
      return {};
    }
    WEFT_MPI_TRY(StartSend(send.buffer, send.count, *send.type, send.destination, send.tag, c, mode, Channel::kPointToPoint, &started));
    *request = Request::Give(started);
    return {};
  });
}

int BlockingReceive(const char* name, ReceiveArguments receive, MPI_Comm comm, MPI_Status* status) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindReceive(receive, c));
    WEFT_MPI_TRY(CheckStatus(status));
    if (status == MPI_STATUS_IGNORE) {
      return Receive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, c, Channel::kPointToPoint, nullptr);
    }
    MPI_Status got{};
    Error error = Receive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, c, Channel::kPointToPoint, &got);
    SetStatus(status, got);
    return error;
  });
}

int NonblockingReceive(const char* name, ReceiveArguments receive, MPI_Comm comm, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindReceive(receive, c));
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* started;
    WEFT_MPI_TRY(
        StartReceive(receive.buffer, receive.count, *receive.type, receive.source, receive.tag, c, Channel::kPointToPoint, &started));
    *request = Request::Give(started);
    return {};
  });
}

// MPI_Sendrecv and MPI_Isendrecv, of which `status` or `request` is null.
int SendReceive(const char* name, SendArguments send, ReceiveArguments receive, MPI_Comm comm, MPI_Status* status, MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindSend(send, c));
    WEFT_MPI_TRY(FindReceive(receive, c));
    const ExchangeSend sending = {send.buffer, send.count, send.type, send.destination, send.tag};
    const ExchangeReceive receiving = {receive.buffer, receive.count, receive.type, receive.source, receive.tag};
    if (request == nullptr) {
      MPI_Status got{};
      Error error = Exchange(sending, receiving, c, &got);
      SetStatus(status, got);
      return error;
    }
    Request* exchange;
    WEFT_MPI_TRY(StartExchange(sending, receiving, c, &exchange));
    *request = Request::Give(exchange);
    return {};
  });
}

int SendReceiveReplace(const char* name, ReceiveArguments receive, int destination, int send_tag, MPI_Comm comm, MPI_Status* status,
                       MPI_Request* request) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindReceive(receive, c));
    WEFT_MPI_TRY(CheckSendRank(destination, c));
    WEFT_MPI_TRY(CheckSendTag(send_tag));
    Request* exchange;
    WEFT_MPI_TRY(StartExchangeInPlace({receive.buffer, receive.count, receive.type, receive.source, receive.tag}, destination, send_tag, c,
                                      &exchange));
    if (request != nullptr) {
      *request = Request::Give(exchange);
      return {};
    }
    Progress::Wait(*exchange);
    SetStatus(status, exchange->status);
    Error error = std::move(exchange->error);
    exchange->Release();
    return error;
  });
}

int MissingArgument(const char* name, const char* argument) {
  return Anywhere(name, [&] { return CheckNotNull(nullptr, argument); });
}

}  // namespace
}  // namespace weft::mpi

// A blocking and a nonblocking send.
#define WEFT_MPI_SENDS(function, i_function, mode)                                                                   \
  WEFT_MPI_BOTH(function, (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm),   \
                BlockingSend(name, SendMode::mode, {buf, count, datatype, dest, tag}, comm))                         \
  WEFT_MPI_BOTH(                                                                                                     \
      i_function,                                                                                                    \
      (const void* buf, Count count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm, MPI_Request* request), \
      NonblockingSend(name, SendMode::mode, {buf, count, datatype, dest, tag}, comm, request))

WEFT_MPI_SENDS(Send, Isend, kStandard)
WEFT_MPI_SENDS(Ssend, Issend, kSynchronous)
WEFT_MPI_SENDS(Rsend, Irsend, kReady)
WEFT_MPI_SENDS(Bsend, Ibsend, kBuffered)

WEFT_MPI_BOTH(Recv,
              (void* buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Status* status),
              BlockingReceive(name, {buf, count, datatype, source, tag}, comm, status))

WEFT_MPI_BOTH(Irecv,
              (void* buf, Count count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm, MPI_Request* request),
              NonblockingReceive(name, {buf, count, datatype, source, tag}, comm, request))

WEFT_MPI_BOTH(Sendrecv,
              (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
               Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Status* status),
              status == nullptr ? MissingArgument(name, "status")
                                : SendReceive(name, {sendbuf, sendcount, sendtype, dest, sendtag},
                                              {recvbuf, recvcount, recvtype, source, recvtag}, comm, status, nullptr))

WEFT_MPI_BOTH(Isendrecv,
              (const void* sendbuf, Count sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf,
               Count recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm, MPI_Request* request),
              request == nullptr ? MissingArgument(name, "request")
                                 : SendReceive(name, {sendbuf, sendcount, sendtype, dest, sendtag},
                                               {recvbuf, recvcount, recvtype, source, recvtag}, comm, nullptr, request))

WEFT_MPI_BOTH(Sendrecv_replace,
              (void* buf, Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
               MPI_Comm comm, MPI_Status* status),
              status == nullptr ? MissingArgument(name, "status")
                                : SendReceiveReplace(name, {buf, count, datatype, source, recvtag}, dest, sendtag, comm,
                                                     status, nullptr))

WEFT_MPI_BOTH(Isendrecv_replace,
              (void* buf, Count count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,
               MPI_Comm comm, MPI_Request* request),
              request == nullptr ? MissingArgument(name, "request")
                                 : SendReceiveReplace(name, {buf, count, datatype, source, recvtag}, dest, sendtag,
                                                      comm, nullptr, request))
