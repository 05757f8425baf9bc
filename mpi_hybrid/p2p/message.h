#ifndef MPI_HYBRID_P2P_MESSAGE_H_
#define MPI_HYBRID_P2P_MESSAGE_H_

#include <mpi.h>

#include <vector>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/p2p/engine/channel.h"
#include "mpi_hybrid/p2p/request/request.h"

// Point-to-point messages (MPI 4.0 chapter 3) for api/, coll/ and rma/. Call with the library's lock held. api/ has
// checked the arguments: ranks are valid or MPI_PROC_NULL, counts are not negative, types are committed, tags are in
// range.
namespace weft::mpi {

constexpr int kLargestTag = 0x3fffffff;  // MPI_TAG_UB

// Starts a send or receive. On success the caller owns the reference in `*request`, which may be complete already (as
// for a small send to a socket with space). An error is returned if it is known at once (the peer is dead, or the
// buffer of MPI_Buffer_attach is full); later errors are in the request. The request keeps the type alive. `count`
// elements at `buffer` belong to the request until it completes.
Error StartSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                Channel channel, Request** request);
// The same in standard mode, if other sends to this destination follow soon: the message may wait for them
// (Transport::WriteSoon). The caller must call Device::Flush to send what the engine has queued.
Error StartSendSoon(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel,
                    Request** request);
// `source` may be MPI_ANY_SOURCE, `tag` MPI_ANY_TAG.
Error StartReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel,
                   Request** request);

// A send in standard mode to a rank, without a request if the message can be written now. False: it has not begun.
// True: all of it is written and `*rest` is null, or the caller owns the reference in `*rest`, a request for the
// remaining part.
bool SendAtOnce(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, Channel channel, Request** rest);
// Start a send or receive and wait for it, without a request if possible. `status` may be null.
Error Send(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode, Channel channel);
Error Receive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Channel channel, MPI_Status* status);

// Waits for `request`, releases the reference, and returns its error. MPIX_ERR_PROC_FAILED: a death hinders the request
// (Request::Hindrance), which is then cancelled.
Error WaitFor(Request* request, MPI_Status* status);

// Persistent requests (inactive until Start).
Error MakePersistentSend(const void* buffer, MPI_Aint count, const Datatype& type, int destination, int tag, Comm& comm, SendMode mode,
                         Request** request);
Error MakePersistentReceive(void* buffer, MPI_Aint count, const Datatype& type, int source, int tag, Comm& comm, Request** request);

// Whether a message can be received; it is not removed. Its status is stored in `status`.
Error Probe(int source, int tag, Comm& comm, bool* found, MPI_Status* status);
// Waits until a message can be received, or none can come any more.
Error AwaitMessage(int source, int tag, Comm& comm, MPI_Status* status);
// Matched probe: removes the message from the waiting ones. The caller owns the reference in `*message`
// (Request::Kind::kMessage), which StartMatchedReceive consumes. Not for MPI_PROC_NULL.
Error MatchedProbe(int source, int tag, Comm& comm, bool* found, Request** message, MPI_Status* status);
Error StartMatchedReceive(void* buffer, MPI_Aint count, const Datatype& type, Request* message, Request** request);

// The sender of a message that MatchedProbe has removed.
ProcessId SourceOf(const Request& message);
// Number of messages that wait for a receive now, including announced ones.
size_t UnexpectedMessages();
// Number of messages for ports (comm/context_pool.h) so far.
unsigned KnocksSoFar();

// MPI_Buffer_attach and MPI_Buffer_detach. Detach waits until the buffer is empty.
Error AttachBuffer(void* buffer, MPI_Aint size);
Error DetachBuffer(void** buffer, MPI_Aint* size);

// StartDevice binds a listener and publishes its address (before Job::Fence). StopDevice lets all that was sent arrive,
// then closes the connections. It is not collective, and takes limited time if peers are gone.
Error StartDevice();
void StopDevice();

// Listens for processes of other jobs, and puts the address into this process's card (Job::CardsOf). A job of one rank
// does not listen before.
Error ListenForOthers();
// PartFrom begins to close the connection between this process and `process`, which no communicator contains. HasParted
// tells whether it is closed. It takes limited time.
void PartFrom(ProcessId process);
bool HasParted(ProcessId process);

// Whether `process` is known to have died (calls that need it return MPIX_ERR_PROC_FAILED).
bool IsDead(ProcessId process);
// The error class of calls that need `process`, which is gone. MPI_ERR_PROC_ABORTED: it is known to have called
// MPI_Finalize. Otherwise MPIX_ERR_PROC_FAILED.
int ClassOfGone(ProcessId process);
// The members of `group` that are known to have died or to have called MPI_Finalize, in the order of the group. On this
// host, these are all that have. Connects to the processes that ClassOfGone was called for, to make sure.
std::vector<ProcessId> GoneOf(const Group& group);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_MESSAGE_H_
