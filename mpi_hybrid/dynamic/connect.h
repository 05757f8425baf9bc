#ifndef MPI_HYBRID_DYNAMIC_CONNECT_H_
#define MPI_HYBRID_DYNAMIC_CONNECT_H_

#include <string>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/dynamic/ports.h"

// Makes communicators between groups that were not connected before (MPI 4.0 sections 11.9 and 11.10). Call with the
// library's lock held.
namespace weft::mpi {

// Arguments of the root of either side; other processes pass none.
struct Meeting {
  std::string port;
  Ports::Deadline deadline;
  Error refusal;  // why it cannot take place; it then fails at all processes of the group
};

// Collective over `comm`. Only the root's arguments count. If it fails at the root, it fails at all processes of the
// group.
Error AcceptGroup(const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made);
Error ConnectGroup(const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made);

// Collective over `comm`. Waits until no operation is pending on it, and until all state of the processes that only it
// contained is gone. The caller has freed its handle and passes its last reference.
Error Disconnect(Ref<Comm> comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_CONNECT_H_
