#ifndef MPI_HYBRID_COLL_MAKE_COMM_H_
#define MPI_HYBRID_COLL_MAKE_COMM_H_

#include <string>
#include <string_view>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/p2p/request/request.h"

// Collective constructors of communicators (MPI 4.0 chapters 7 and 8); they agree on a context id by a reduction over
// the parent. All with the library's lock; arguments are valid. A process that is not in the result gets a null
// reference.
namespace weft::mpi {

// `refusal`: why this process cannot take part, such as a failed callback; the duplication fails at every process then,
// and returns this.
Error Duplicate(Comm& comm, Ref<Comm>* made, const Error& refusal = {});  // without attributes: api/ copies those
// MPI_Comm_idup: `made` may be given out at once, and is ready when the request completes.
Error StartDuplicate(Comm& comm, Ref<Comm>* made, Request** request, const Error& refusal = {});
Error CreateFromGroup(Comm& parent, const Ref<Group>& group, Ref<Comm>* made);  // MPI_Comm_create
// MPI_Comm_create_group: collective over `group`.
Error CreateGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made);
// MPI_Comm_create_from_group: of processes that have no communicator yet, of which this is one; `text` tells constructors
// that are under way at once apart.
Error CreateOfGroup(const Ref<Group>& group, std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made);
// MPI_Intercomm_create_from_groups. `remote` (null elsewhere), `remote_leader` and `refusal` count at the local leader.
Error CreateInterOfGroups(const Ref<Group>& local, int local_leader, const Group* remote, int remote_leader,
                          std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made, const Error& refusal);
Error Split(Comm& comm, int color, int key, Ref<Comm>* made, const Error& refusal = {});
// MPI_COMM_TYPE_SHARED: processes that can share memory. `take_part`: false for split_type MPI_UNDEFINED.
Error SplitByHost(Comm& comm, int key, Ref<Comm>* made, bool take_part = true);
// Processes to which `directory` is the same one, of whatever host: two that do not run on one kernel find that out by files in it (".weft-nbhd-"
// and a number, for a moment), so that what cannot be written to anywhere is not taken for the same on two hosts. Nobody gets a communicator
// where the text is not the same at all, or is empty at all; a process for which there is no such directory gets none.
Error SplitByDirectory(Comm& comm, const std::string& directory, int key, Ref<Comm>* made);
// `peer` (null elsewhere) and `remote_leader` count at the local leader. MPI_ERR_COMM: the groups overlap. `refusal`:
// as in Duplicate.
Error CreateInter(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Ref<Comm>* made,
                  const Error& refusal = {});
Error MergeInter(Comm& inter, bool high, Ref<Comm>* made);  // MPI_ERR_ARG: `high` is not the same throughout a group
Error Free(Ref<Comm> comm);                                 // the contexts return to the pool when nothing uses them

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_MAKE_COMM_H_
