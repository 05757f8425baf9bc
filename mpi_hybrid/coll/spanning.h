#ifndef MPI_HYBRID_COLL_SPANNING_H_
#define MPI_HYBRID_COLL_SPANNING_H_

#include <mpi.h>

#include <cstdint>
#include <memory>

#include "mpi_hybrid/coll/clients.h"
#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/p2p/engine/channel.h"

// Communicators that span clients of an IMPI job (IMPI 0.0, chapter 4): their state, and their constructors.
//
// A context of the protocol is one above the highest that any process of the parent has seen, which is found by a maximum over the parent. The engine's
// contexts follow from it (OpenForeignContext). A communicator of one client that is made from one that spans clients takes part in this, and gets contexts
// of Weft's own, on which its members agree among each other: it is like all others then.
//
// The protocol cannot say that a process is unable to take part. Such a process takes all steps and has the error alone.
namespace weft::mpi {

class Spanning final : public Comm::Extension {
 public:
  // `comm` has its contexts.
  explicit Spanning(const Comm& comm);
  ~Spanning() override;

  // Of an intracommunicator.
  const Clients& clients() const { return *clients_; }

 private:
  const ContextId context_;
  std::unique_ptr<Clients> clients_;  // null: an intercommunicator
};

// The collectives of an intracommunicator that spans clients; null: it does not.
inline const Clients* ClientsOf(const Comm& comm) {
  return comm.clients == nullptr ? nullptr : &static_cast<const Spanning&>(*comm.clients).clients();
}
// Whether a collective can be carried out over a communicator that spans clients. `by_protocol`: the protocol has it, and with it the tags. The error of
// others is MPI_ERR_UNSUPPORTED_OPERATION.
Error CheckCollective(const Comm& comm, bool by_protocol);

// Of a communicator that spans clients, the error of what IMPI does not carry (windows, files, ...); else none. `what`: "windows".
Error CheckWithinClient(const Comm& comm, const char* what);

// Of a message of the protocol with `peer`, of another client: collective, but for reductions with LAM/MPI, which has those among the messages.
Channel ChannelBetweenClients(const Comm& comm, int peer, int tag);

// Makes MPI_COMM_WORLD span the clients, after StartDevice.
Error SpanWorld(Comm& world);

// See make_comm.h. `comm` or `inter` spans clients.
Error DuplicateSpanning(Comm& comm, Ref<Comm>* made);                                        // 4.6
Error CreateFromGroupSpanning(Comm& parent, const Ref<Group>& group, Ref<Comm>* made);      // 4.4
Error SplitSpanning(Comm& comm, int color, int key, Ref<Comm>* made);                       // 4.7
Error MergeSpanning(Comm& inter, bool high, Ref<Comm>* made);                               // 4.9
Error BarrierBeforeFree(Comm& comm);                                                        // 4.5
// In an IMPI job, before anything else of CreateInter. `*made` null and no error: both groups are of this client, and CreateInter goes on.
Error CreateInterSpanning(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Ref<Comm>* made, const Error& refusal);  // 4.8

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_SPANNING_H_
