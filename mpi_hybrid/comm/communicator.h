#ifndef MPI_HYBRID_COMM_COMMUNICATOR_H_
#define MPI_HYBRID_COMM_COMMUNICATOR_H_

#include <mpi.h>

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
// for point-to-point, `context + 1` for collectives. 0 and 1 are MPI_COMM_WORLD's, 2 and 3 MPI_COMM_SELF's, 4 to 7
// the library's own (context_pool.h).
using ContextId = uint32_t;

// MPI_Comm. For an intracommunicator `remote` is `local`.
class Comm : public RefCounted<Comm> {
 public:
  MPI_Comm handle = MPI_COMM_NULL;
  ContextId send_context = 0;     // goes into what we send; of an intercommunicator's other side its receive_context
  ContextId receive_context = 0;  // what we match
  int rank = 0;                   // in `local`
  Ref<Group> local, remote;
  bool inter = false;
  bool is_local_first = false;  // intercommunicators: which side's ranks come first in a merge with equal `high`
  Ref<Comm> local_comm;         // intercommunicators: over `local`, for their collectives

  Ref<ErrorHandler> error_handler;  // null: the program gave none to this or to what it was made from
  Attributes attributes;
  std::unique_ptr<Topology> topology;
  Ref<Info> info;
  std::string name;
  int stream = -1;  // on which our messages go, of those that the wire has; -1: by their tag
  uint32_t next_collective = 0;  // tag of the next collective on the collective context, in program order at all ranks
  // Partitioned requests made so far, by {is a send, peer, tag}: both ends number theirs in the order of their making.
  std::map<std::tuple<bool, int, int>, uint32_t> partitioned;
  // What coll/ keeps for it.
  class Extension {
   public:
    virtual ~Extension() = default;
  };
  std::unique_ptr<Extension> collectives;
  std::unique_ptr<Extension> levels;  // likewise: which ranks are on which host
  // Members whose death the program has acknowledged (MPIX_Comm_failure_ack), by number.
  std::vector<ProcessId> acknowledged;
  std::vector<ProcessId> found_dead;  // by agreements on it, whether this process has noticed or not
  uint32_t next_agreement = 0;        // number of the next MPIX_Comm_agree or _shrink, the same at all ranks
  bool revoked = false;               // nothing goes by it any more (Engine::Revoke)
  bool freed = false;            // by the user
  bool owns_context = false;     // receive_context goes back to the pool with this object
  bool holds_members = false;

  Comm() = default;
  ~Comm();
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;

  // Its members stay connected for as long as it is there. Once, when both groups are set.
  void HoldMembers();

  // Of the group that ranks of messages refer to.
  int remote_size() const { return remote->size(); }
  int size() const { return local->size(); }
  ProcessId peer(int remote_rank) const { return remote->members[static_cast<size_t>(remote_rank)]; }

  // What all its members call it, and no other communicator that any of them ever had, whatever its contexts; 0: nothing.
  uint64_t identity() const { return identity_; }
  void set_identity(uint64_t identity);
  static Comm* FindByIdentity(uint64_t identity);
  // Of what is made on the `number`th occasion by the members of this one.
  uint64_t IdentityOfChild(uint64_t number) const;

  static Comm* Find(MPI_Comm handle) { return handle == MPI_COMM_WORLD ? world_ : FindOther(handle); }

  // A handle for the program, which owns a reference until TakeBack (MPI_Comm_free; not of predefined ones). Requests
  // may keep the object alive after that; its handle is MPI_COMM_NULL then.
  static MPI_Comm Give(const Ref<Comm>& comm);
  static void TakeBack(Comm& comm);

 private:
  friend void MakeWorld(int rank, int size);
  friend void DropWorld();
  static Comm* FindOther(MPI_Comm handle);

  static inline Comm* world_ = nullptr;  // World(), while there is one
  uint64_t identity_ = 0;
};

// 64 bits that depend on all of both.
uint64_t MixIdentity(uint64_t a, uint64_t b);

// MPI_COMM_WORLD and _SELF; made by MPI_Init.
Comm& World();
Comm& Self();
bool IsPredefined(const Comm& comm);
// What MPI_Comm_get_parent gives: the intercommunicator with those who spawned this job, until the program frees it; else
// null.
Comm* Parents();
void SetParents(Comm* comm);

// MPI_Init and MPI_Finalize. DropWorld may be called without MakeWorld.
void MakeWorld(int rank, int size);
void DropWorld();

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COMM_COMMUNICATOR_H_
