#ifndef MPI_HYBRID_P2P_MESSAGE_H_
#define MPI_HYBRID_P2P_MESSAGE_H_

#include <mpi.h>

#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/request/request.h"

// Point-to-point messages (MPI 4.0 chapter 3) as api/, coll/ and rma/ use them. All calls with the library's lock. Ranks are valid or
// MPI_PROC_NULL, counts not negative, types committed, tags in range: api/ has checked.
namespace weft::mpi {

constexpr int kLargestTag = 0x3fffffff;  // MPI_TAG_UB

// Start a send or receive. On success `*request` is the caller's reference (complete already, perhaps: small sends to a socket with
// room are). An error is one that is known at once (the peer is dead, the buffer of MPI_Buffer_attach is full); later ones are in the request.
// The type is kept alive by the request. `count` elements at `buffer` belong to the request until it completes.
Error StartSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                Channel channel, Request** request);
// The same in standard mode, for one that others to this destination follow soon: it may wait for them (Transport::WriteSoon).
// What the engine queues leaves with Device::Flush, which is the caller's to call.
Error StartSendSoon(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel,
                    Request** request);
// `source` may be MPI_ANY_SOURCE, `tag` MPI_ANY_TAG.
Error StartReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
                   Request** request);

// A send in standard mode to a rank, without a request where nothing stands in the way of writing it now. False: it has not begun. Else
// `*rest` is null when all of it is written, or the caller's reference to the request of what is not.
bool SendAtOnce(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel, Request** rest);
// The same and wait for it, without a request where that is possible. `status` may be null.
Error Send(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode, Channel channel);
Error Receive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel, MPI_Status* status);

// Waits for `request`, takes the reference, returns its error. One that a death hinders (Request::Hindrance) is taken back: MPIX_ERR_PROC_FAILED.
Error WaitFor(Request* request, MPI_Status* status);

// Persistent requests (inactive until Start).
Error MakePersistentSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                         Request** request);
Error MakePersistentReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Request** request);

// Whether a message is there to be received; only looks. Its status in `status`.
Error Probe(int source, int tag, Comm& comm, bool* found, MPI_Status* status);
// Waits until one is, or none can come any more.
Error AwaitMessage(int source, int tag, Comm& comm, MPI_Status* status);
// Matched probe: takes the message out; `*message` (Request::Kind::kMessage, the caller's reference) is for StartMatchedReceive, which
// consumes it. Not for MPI_PROC_NULL.
Error MatchedProbe(int source, int tag, Comm& comm, bool* found, Request** message, MPI_Status* status);
Error StartMatchedReceive(void* buffer, MPI_Aint count, const Datatype& type, Request* message, Request** request);

// Who sent a message that MatchedProbe took out.
ProcessId SourceOf(const Request& message);
// How many messages wait for a receive now, those that are announced too.
size_t UnexpectedMessages();
// How many messages have come for ports (comm/context_pool.h) so far.
unsigned KnocksSoFar();

// MPI_Buffer_attach and _detach. Detach waits until the buffer is empty.
Error AttachBuffer(void* buffer, MPI_Aint size);
Error DetachBuffer(void** buffer, MPI_Aint* size);

// Start-up: binds a listener and publishes its address (before Job::Fence). Shutdown: lets everything sent so far arrive, then closes; not
// collective, and bounded in time when peers are gone.
Error StartDevice();
void StopDevice();

// Listens for processes of other jobs, and makes this one's card (Job::CardsOf) say where; a job of one does not before.
Error ListenForOthers();
// Begins to end what is between this process and `process`, which no communicator has; whether that is over. Bounded in
// time. Then nothing is left of its connection.
void PartFrom(ProcessId process);
bool HasParted(ProcessId process);

// Whether `process` is known to have died (MPIX_ERR_PROC_FAILED at calls that need it).
bool IsDead(ProcessId process);
// The class of the error at a call that needs `process`, which is gone: MPI_ERR_PROC_ABORTED where it is known to have called MPI_Finalize, else
// MPIX_ERR_PROC_FAILED, whoever noticed.
int ClassOfGone(ProcessId process);
// Those of `group` that are known to have died or to have called MPI_Finalize, in its order; on this host all that did. Connects to those of
// which ClassOfGone was asked, to make sure.
std::vector<ProcessId> GoneOf(const Group& group);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_MESSAGE_H_
