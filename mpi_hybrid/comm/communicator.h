#ifndef MPI_HYBRID_COMM_COMMUNICATOR_H_
#define MPI_HYBRID_COMM_COMMUNICATOR_H_

#include <mpi.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "mpi_hybrid/comm/group.h"
#include "mpi_hybrid/comm/topology.h"
#include "mpi_hybrid/core/attributes.h"
#include "mpi_hybrid/core/error_handler.h"
#include "mpi_hybrid/core/info.h"

namespace weft::mpi {

// A context separates the messages of one communicator from those of all others. Each communicator owns two: `context`
// for point-to-point messages, `context + 1` for collectives. 0 and 1 belong to MPI_COMM_WORLD, 2 and 3 to
// MPI_COMM_SELF, 4 to 7 to the library itself (context_pool.h).
using ContextId = uint32_t;

// MPI_Comm. In an intracommunicator, `remote` is the same as `local`.
class Comm : public RefCounted<Comm> {
 public:
  MPI_Comm handle = MPI_COMM_NULL;
  // sent in our messages: the receive_context of the receivers, which differs from ours in an intercommunicator
  ContextId send_context = 0;
  ContextId receive_context = 0;  // matched in messages that we receive
  int rank = 0;                   // in `local`
  Ref<Group> local, remote;
  bool inter = false;
  bool is_local_first = false;  // intercommunicators: which side's ranks come first in a merge with equal `high`
  Ref<Comm> local_comm;         // intercommunicators: over `local`, for their collectives

  // null: the program set none on this communicator or on the one that it was made from
  Ref<ErrorHandler> error_handler;
  Attributes attributes;
  std::unique_ptr<Topology> topology;
  Ref<Info> info;
  std::string name;
  int stream = -1;  // the stream of the wire for our messages, if the wire has streams; -1: chosen by tag
  uint32_t next_collective = 0;  // tag of the next collective on the collective context, in program order at all ranks
  // Number of partitioned requests made so far, by {is a send, peer, tag}. Both ends number their requests in the order
  // in which they are made.
  std::map<std::tuple<bool, int, int>, uint32_t> partitioned;
  // Owned by coll/: its state for this communicator.
  class Extension {
   public:
    virtual ~Extension() = default;
  };
  std::unique_ptr<Extension> collectives;
  std::unique_ptr<Extension> levels;  // also owned by coll/: which ranks are on which host
  // Also owned by coll/. Set: the communicator has members of several clients of an IMPI job (coll/spanning.h).
  std::unique_ptr<Extension> clients;
  std::unique_ptr<std::array<int, 4>> colours;  // owned by api/: IMPI's attributes, once they were asked for
  // Members whose death the program has acknowledged (MPIX_Comm_failure_ack), by process number.
  std::vector<ProcessId> acknowledged;
  // members that agreements on this communicator found dead, whether or not this process noticed it
  std::vector<ProcessId> found_dead;
  uint32_t next_agreement = 0;        // number of the next MPIX_Comm_agree or _shrink, the same at all ranks
  bool revoked = false;               // no more messages may use it (Engine::Revoke)
  bool freed = false;            // by the user
  bool owns_context = false;     // receive_context returns to the pool when this object is destroyed
  bool holds_members = false;

  Comm() = default;
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Keeps the members connected as long as this object exists. Call it once, after both groups are set.
  void HoldMembers();

  // Size of the group that the ranks in messages refer to.
  int remote_size() const { return remote->size(); }
  int size() const { return local->size(); }
  ProcessId peer(int remote_rank) const { return remote->members[static_cast<size_t>(remote_rank)]; }

  // A number that all members use for this communicator, and for no other that any of them ever had. It is independent
  // of the contexts. 0: it has none.
  uint64_t identity() const { return identity_; }
  void set_identity(uint64_t identity);
  static Comm* FindByIdentity(uint64_t identity);
  // The identity of the communicator that the members of this one make on the `number`th occasion.
  uint64_t IdentityOfChild(uint64_t number) const;

  static Comm* Find(MPI_Comm handle) { return handle == MPI_COMM_WORLD ? world_ : FindOther(handle); }

  // Returns a handle for the program, which owns a reference until TakeBack (MPI_Comm_free; not for predefined
  // communicators). Requests may keep the object alive longer; its handle is MPI_COMM_NULL then.
  static MPI_Comm Give(const Ref<Comm>& comm);
  static void TakeBack(Comm& comm);

 private:
  friend void MakeWorld(int rank, std::vector<ProcessId> everyone);
  friend void DropWorld();
  static Comm* FindOther(MPI_Comm handle);

  static inline Comm* world_ = nullptr;  // World(), while it exists
  uint64_t identity_ = 0;
};

// 64 bits that depend on all bits of both arguments.
uint64_t MixIdentity(uint64_t a, uint64_t b);

// MPI_COMM_WORLD and MPI_COMM_SELF. MPI_Init makes them.
Comm& World();
Comm& Self();
bool IsPredefined(const Comm& comm);
// The result of MPI_Comm_get_parent: the intercommunicator with the processes that spawned this job, until the program
// frees it; else null.
Comm* Parents();
void SetParents(Comm* comm);

// Called by MPI_Init and MPI_Finalize. DropWorld may be called without MakeWorld. `everyone`: this process and the others of MPI_COMM_WORLD, in which it
// has the rank `rank`; by default, the processes of its own job.
void MakeWorld(int rank, int size);
void MakeWorld(int rank, std::vector<ProcessId> everyone);
void DropWorld();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_COMMUNICATOR_H_
