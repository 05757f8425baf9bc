#ifndef MPI_HYBRID_COLL_MAKE_COMM_H_
#define MPI_HYBRID_COLL_MAKE_COMM_H_

#include <string>
#include <string_view>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/p2p/request/request.h"

// Collective constructors of communicators (MPI 4.0 chapters 7 and 8). They agree on a context id by a reduction over
// the parent. Call them with the library's lock held and with valid arguments. A process that is not in the result gets
// a null reference.
namespace weft::mpi {

// `refusal`: the reason why this process cannot take part, such as a failed callback. The duplication then fails at
// every process; this one returns `refusal`.
Error Duplicate(Comm& comm, Ref<Comm>* made, const Error& refusal = {});  // without attributes, which api/ copies
// MPI_Comm_idup. `made` may be given to the program at once; it can be used when the request completes.
Error StartDuplicate(Comm& comm, Ref<Comm>* made, Request** request, const Error& refusal = {});
Error CreateFromGroup(Comm& parent, const Ref<Group>& group, Ref<Comm>* made);  // MPI_Comm_create
// MPI_Comm_create_group: collective over `group`.
Error CreateGroup(Comm& parent, const Ref<Group>& group, int tag, Ref<Comm>* made);
// MPI_Comm_create_from_group: for processes that have no communicator yet. This process is one of them. `text`
// distinguishes constructors that run at the same time.
Error CreateOfGroup(const Ref<Group>& group, std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made);
// MPI_Intercomm_create_from_groups. `remote` (null elsewhere), `remote_leader` and `refusal` are used only at the local
// leader.
Error CreateInterOfGroups(const Ref<Group>& local, int local_leader, const Group* remote, int remote_leader,
                          std::string_view text, const Ref<ErrorHandler>& handler, Ref<Comm>* made, const Error& refusal);
Error Split(Comm& comm, int color, int key, Ref<Comm>* made, const Error& refusal = {});
// MPI_COMM_TYPE_SHARED: the processes that can share memory. `take_part`: false for split_type MPI_UNDEFINED.
Error SplitByHost(Comm& comm, int key, Ref<Comm>* made, bool take_part = true);
// Makes a communicator of the processes for which `directory` is the same directory, on any host. Processes that do not
// run on one kernel find that out by files in the directory, which exist for a moment (".weft-nbhd-" and a number).
// Therefore a directory in which no process can write does not count as the same on two hosts. No process gets a
// communicator if the text differs between processes or is empty at all of them. A process without such a directory
// gets none.
Error SplitByDirectory(Comm& comm, const std::string& directory, int key, Ref<Comm>* made);
// `peer` (null elsewhere) and `remote_leader` are used only at the local leader. MPI_ERR_COMM: the groups overlap.
// `refusal`: as in Duplicate.
Error CreateInter(Comm& local, int local_leader, Comm* peer, int remote_leader, int tag, Ref<Comm>* made,
                  const Error& refusal = {});
Error MergeInter(Comm& inter, bool high, Ref<Comm>* made);  // MPI_ERR_ARG: `high` is not the same throughout a group
// Comes before the program loses its handle. ~Comm returns the contexts when nothing uses them any more.
Error BeforeFree(Comm& comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_COLL_MAKE_COMM_H_
