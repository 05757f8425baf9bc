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
    WEFT_MPI_TRY(StartSend(send.buffer, send.count, *send.type, send.destination, send.tag, c, mode, Channel::kPointToPoint, &started));
    *request = Request::Give(started);
    return {};
  });
}

int BlockingReceive(const char* name, ReceiveArguments receive, MPI_Comm comm, MPI_Status* status) {
  return OnComm(name, comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(FindReceive(receive, c));
    WEFT_MPI_TRY(CheckStatus(status));
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

using namespace weft::mpi;

#define WEFT_BLOCKING_SEND(function, count_type, mode)                                                                        \
  int PMPI_##function(const void* buf, count_type count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm) {           \
    return BlockingSend("MPI_" #function, SendMode::mode, {buf, count, datatype, dest, tag}, comm);                           \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(function)
#define WEFT_NONBLOCKING_SEND(function, count_type, mode)                                                                     \
  int PMPI_##function(const void* buf, count_type count, MPI_Datatype datatype, int dest, int tag, MPI_Comm comm,             \
                      MPI_Request* request) {                                                                                 \
    return NonblockingSend("MPI_" #function, SendMode::mode, {buf, count, datatype, dest, tag}, comm, request);               \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(function)

WEFT_BLOCKING_SEND(Send, int, kStandard)
WEFT_BLOCKING_SEND(Send_c, MPI_Count, kStandard)
WEFT_BLOCKING_SEND(Ssend, int, kSynchronous)
WEFT_BLOCKING_SEND(Ssend_c, MPI_Count, kSynchronous)
WEFT_BLOCKING_SEND(Rsend, int, kReady)
WEFT_BLOCKING_SEND(Rsend_c, MPI_Count, kReady)
WEFT_BLOCKING_SEND(Bsend, int, kBuffered)
WEFT_BLOCKING_SEND(Bsend_c, MPI_Count, kBuffered)
WEFT_NONBLOCKING_SEND(Isend, int, kStandard)
WEFT_NONBLOCKING_SEND(Isend_c, MPI_Count, kStandard)
WEFT_NONBLOCKING_SEND(Issend, int, kSynchronous)
WEFT_NONBLOCKING_SEND(Issend_c, MPI_Count, kSynchronous)
WEFT_NONBLOCKING_SEND(Irsend, int, kReady)
WEFT_NONBLOCKING_SEND(Irsend_c, MPI_Count, kReady)
WEFT_NONBLOCKING_SEND(Ibsend, int, kBuffered)
WEFT_NONBLOCKING_SEND(Ibsend_c, MPI_Count, kBuffered)

#define WEFT_RECEIVE(function, i_function, count_type)                                                                        \
  int PMPI_##function(void* buf, count_type count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,                 \
                      MPI_Status* status) {                                                                                   \
    return BlockingReceive("MPI_" #function, {buf, count, datatype, source, tag}, comm, status);                              \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(function)                                                                                                    \
  int PMPI_##i_function(void* buf, count_type count, MPI_Datatype datatype, int source, int tag, MPI_Comm comm,               \
                        MPI_Request* request) {                                                                               \
    return NonblockingReceive("MPI_" #i_function, {buf, count, datatype, source, tag}, comm, request);                        \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(i_function)

WEFT_RECEIVE(Recv, Irecv, int)
WEFT_RECEIVE(Recv_c, Irecv_c, MPI_Count)

#define WEFT_SENDRECV(function, i_function, count_type)                                                                       \
  int PMPI_##function(const void* sendbuf, count_type sendcount, MPI_Datatype sendtype, int dest, int sendtag, void* recvbuf, \
                      count_type recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,                    \
                      MPI_Status* status) {                                                                                   \
    if (status == nullptr) return MissingArgument("MPI_" #function, "status");                                                \
    return SendReceive("MPI_" #function, {sendbuf, sendcount, sendtype, dest, sendtag},                                       \
                       {recvbuf, recvcount, recvtype, source, recvtag}, comm, status, nullptr);                               \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(function)                                                                                                    \
  int PMPI_##i_function(const void* sendbuf, count_type sendcount, MPI_Datatype sendtype, int dest, int sendtag,              \
                        void* recvbuf, count_type recvcount, MPI_Datatype recvtype, int source, int recvtag, MPI_Comm comm,   \
                        MPI_Request* request) {                                                                               \
    if (request == nullptr) return MissingArgument("MPI_" #i_function, "request");                                            \
    return SendReceive("MPI_" #i_function, {sendbuf, sendcount, sendtype, dest, sendtag},                                     \
                       {recvbuf, recvcount, recvtype, source, recvtag}, comm, nullptr, request);                              \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(i_function)

WEFT_SENDRECV(Sendrecv, Isendrecv, int)
WEFT_SENDRECV(Sendrecv_c, Isendrecv_c, MPI_Count)

#define WEFT_SENDRECV_REPLACE(function, i_function, count_type)                                                               \
  int PMPI_##function(void* buf, count_type count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,     \
                      MPI_Comm comm, MPI_Status* status) {                                                                    \
    if (status == nullptr) return MissingArgument("MPI_" #function, "status");                                                \
    return SendReceiveReplace("MPI_" #function, {buf, count, datatype, source, recvtag}, dest, sendtag, comm, status,         \
                              nullptr);                                                                                       \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(function)                                                                                                    \
  int PMPI_##i_function(void* buf, count_type count, MPI_Datatype datatype, int dest, int sendtag, int source, int recvtag,   \
                        MPI_Comm comm, MPI_Request* request) {                                                                \
    if (request == nullptr) return MissingArgument("MPI_" #i_function, "request");                                            \
    return SendReceiveReplace("MPI_" #i_function, {buf, count, datatype, source, recvtag}, dest, sendtag, comm, nullptr,      \
                              request);                                                                                       \
  }                                                                                                                           \
  WEFT_MPI_ALIAS(i_function)

WEFT_SENDRECV_REPLACE(Sendrecv_replace, Isendrecv_replace, int)
WEFT_SENDRECV_REPLACE(Sendrecv_replace_c, Isendrecv_replace_c, MPI_Count)
