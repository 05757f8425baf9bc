#ifndef MPI_HYBRID_DYNAMIC_CONNECT_H_
#define MPI_HYBRID_DYNAMIC_CONNECT_H_

#include <string>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/dynamic/ports.h"

// Communicators between groups that had nothing in common (MPI 4.0 sections 11.9 and 11.10). With the library's lock.
namespace weft::mpi {

// What the root of either side gives; the others give none.
struct Meeting {
  std::string port;
  Ports::Deadline deadline;
  Error refusal;  // why there can be none: it fails at all of the group then
};

// Collective over `comm`, of which `root` counts. Fails at all of the group when it does at the root.
Error AcceptGroup(const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made);
Error ConnectGroup(const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made);

// Collective over `comm`: waits until nothing is under way on it, and until nothing is left of the processes that only
// it had. The caller has freed its handle, and gives its last reference.
Error Disconnect(Ref<Comm> comm);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_DYNAMIC_CONNECT_H_
