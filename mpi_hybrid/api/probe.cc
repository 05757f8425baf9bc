#include "mpi_hybrid/api/bindings.h"
#include "mpi_hybrid/api/entry.h"
#include "mpi_hybrid/api/message_arguments.h"
#include "mpi_hybrid/p2p/message.h"
#include "mpi_hybrid/p2p/progress.h"

// Probes and matched receives (MPI 4.0 section 3.8).
namespace weft::mpi {
namespace {

Error CheckProbe(int source, int tag, const MPI_Status* status, const Comm& comm) {
  WEFT_MPI_TRY(CheckReceiveRank(source, comm));
  WEFT_MPI_TRY(CheckReceiveTag(tag));
  return CheckStatus(status);
}

// MPI_Mprobe and MPI_Improbe: the message of `*flag`.
Error TakeMatched(int source, int tag, Comm& comm, bool* found, MPI_Message* message, MPI_Status* status) {
  Request* taken;
  MPI_Status got;
  WEFT_MPI_TRY(MatchedProbe(source, tag, comm, found, &taken, &got));
  if (!*found) return {};
  *message = Request::Give(taken);
  SetStatus(status, got);
  return {};
}

Error FindMessage(const MPI_Message* handle, Request** message) {
  WEFT_MPI_TRY(CheckNotNull(handle, "message"));
  *message = nullptr;
  if (*handle == MPI_MESSAGE_NO_PROC) return {};
  *message = Request::Find(*handle);
  if (*message != nullptr && (*message)->kind == Request::Kind::kMessage) return {};
  return Error(MPI_ERR_REQUEST, *handle == MPI_MESSAGE_NULL ? "message is MPI_MESSAGE_NULL" : "message is none, or was received already");
}

// As OnComm for the communicator of `*message`; body(Comm*, Request* message or null for MPI_MESSAGE_NO_PROC).
template <typename Body>
int OnMessage(const char* name, const MPI_Message* handle, Body body) {
  LockGuard lock;
  if (g_library_state != LibraryState::kRunning) [[unlikely]] NotRunning(name);
  Request* message;
  if (Error error = FindMessage(handle, &message); !error.ok()) return ReportAnywhere(name, error);
  const Ref<Comm> comm = message == nullptr ? Ref<Comm>() : message->comm;
  Error error = body(message);
  return error.ok() ? MPI_SUCCESS : ReportOnComm(name, comm.get(), error);
}

// Starts to receive `message`, whose handle becomes MPI_MESSAGE_NULL; null: MPI_MESSAGE_NO_PROC.
Error StartTaken(void* buffer, MPI_Count count, MPI_Datatype datatype, Request* message, MPI_Message* handle, Request** request) {
  const Datatype* type;
  WEFT_MPI_TRY(FindData(buffer, count, datatype, &type));
  if (message == nullptr) {
    *handle = MPI_MESSAGE_NULL;
    return StartReceive(buffer, count, *type, MPI_PROC_NULL, MPI_ANY_TAG, Self(), Channel::kPointToPoint, request);
  }
  message->AddRef();
  Request::TakeBack(handle);
  return StartMatchedReceive(buffer, count, *type, message, request);
}

int MatchedReceive(const char* name, void* buffer, MPI_Count count, MPI_Datatype datatype, MPI_Message* handle, MPI_Status* status) {
  return OnMessage(name, handle, [&](Request* message) -> Error {
    WEFT_MPI_TRY(CheckStatus(status));
    Request* request;
    WEFT_MPI_TRY(StartTaken(buffer, count, datatype, message, handle, &request));
    Progress::Wait(*request);
    SetStatus(status, request->status);
    Error error = std::move(request->error);
    request->Release();
    return error;
  });
}

int NonblockingMatchedReceive(const char* name, void* buffer, MPI_Count count, MPI_Datatype datatype, MPI_Message* handle,
                              MPI_Request* request) {
  return OnMessage(name, handle, [&](Request* message) -> Error {
    WEFT_MPI_TRY(CheckNotNull(request, "request"));
    Request* started;
    WEFT_MPI_TRY(StartTaken(buffer, count, datatype, message, handle, &started));
    *request = Request::Give(started);
    return {};
  });
}

}  // namespace
}  // namespace weft::mpi

using namespace weft::mpi;

int PMPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  return OnComm("MPI_Probe", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckProbe(source, tag, status, c));
    MPI_Status got;
    WEFT_MPI_TRY(AwaitMessage(source, tag, c, &got));
    SetStatus(status, got);
    return {};
  });
}
WEFT_MPI_ALIAS(Probe)

int PMPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  return OnComm("MPI_Iprobe", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckProbe(source, tag, status, c));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    bool found;
    MPI_Status got;
    WEFT_MPI_TRY(Probe(source, tag, c, &found, &got));
    if (!found) {
      Progress::PollForTest();
      WEFT_MPI_TRY(Probe(source, tag, c, &found, &got));
    }
    *flag = found;
    if (found) SetStatus(status, got);
    return {};
  });
}
WEFT_MPI_ALIAS(Iprobe)

int PMPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  return OnComm("MPI_Mprobe", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckProbe(source, tag, status, c));
    WEFT_MPI_TRY(CheckNotNull(message, "message"));
    if (source == MPI_PROC_NULL) {
      *message = MPI_MESSAGE_NO_PROC;
      SetStatus(status, ProcNullStatus());
      return {};
    }
    bool found;
    MPI_Status got;
    WEFT_MPI_TRY(AwaitMessage(source, tag, c, &got));
    return TakeMatched(source, tag, c, &found, message, status);
  });
}
WEFT_MPI_ALIAS(Mprobe)

int PMPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  return OnComm("MPI_Improbe", comm, [&](Comm& c) -> Error {
    WEFT_MPI_TRY(CheckProbe(source, tag, status, c));
    WEFT_MPI_TRY(CheckNotNull(flag, "flag"));
    WEFT_MPI_TRY(CheckNotNull(message, "message"));
    if (source == MPI_PROC_NULL) {
      *flag = 1;
      *message = MPI_MESSAGE_NO_PROC;
      SetStatus(status, ProcNullStatus());
      return {};
    }
    bool found;
    WEFT_MPI_TRY(TakeMatched(source, tag, c, &found, message, status));
    if (!found) {
      Progress::PollForTest();
      WEFT_MPI_TRY(TakeMatched(source, tag, c, &found, message, status));
    }
    *flag = found;
    return {};
  });
}
WEFT_MPI_ALIAS(Improbe)

WEFT_MPI_BOTH(Mrecv, (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Status* status),
              MatchedReceive(name, buf, count, datatype, message, status))

WEFT_MPI_BOTH(Imrecv, (void* buf, Count count, MPI_Datatype datatype, MPI_Message* message, MPI_Request* request),
              NonblockingMatchedReceive(name, buf, count, datatype, message, request))
