#ifndef MPI_HYBRID_COLL_MAKE_COMM_H_
#define MPI_HYBRID_COLL_MAKE_COMM_H_

#include "mpi_hybrid/comm/communicator.h"

// Collective constructors of communicators (MPI 4.0 chapters 7 and 8); they agree on a context id by a reduction over the parent. All with
// the library's lock; arguments are valid. A process that is not in the result gets a null reference.
namespace weft::mpi {

Error Duplicate(Comm& comm, Ref<Comm>* made);                      // without attributes: api/ copies those
Error StartDuplicate(Comm& comm, Ref<Comm>* made, Request** request);  // MPI_Comm_idup
Error CreateFromGroup(Comm& parent, const Ref<Group>& group, Ref<Comm>* made);            // MPI_Comm_create
Error CreateGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made);      // MPI_Comm_create_group: collective over `group`
Error Split(Comm& comm, int color, int key, Ref<Comm>* made);
Error SplitByHost(Comm& comm, int key, Ref<Comm>* made);           // MPI_COMM_TYPE_SHARED
Error CreateInter(Comm& local, int local_leader, Comm& peer, int remote_leader, int tag, Ref<Comm>* made);
Error MergeInter(Comm& inter, bool high, Ref<Comm>* made);
Error Free(Ref<Comm> comm);                                        // the contexts return to the pool when nothing uses them

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_MAKE_COMM_H_
