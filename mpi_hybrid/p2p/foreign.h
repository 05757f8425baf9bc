#ifndef MPI_HYBRID_P2P_FOREIGN_H_
#define MPI_HYBRID_P2P_FOREIGN_H_

#include <cstdint>
#include <span>

#include "mpi_hybrid/comm/communicator.h"
#include "mpi_hybrid/core/error.h"
#include "mpi_hybrid/core/impi_world.h"
#include "mpi_hybrid/core/job.h"

// Processes of other clients of an IMPI job (core/impi_world.h), to which messages go in external32.
namespace weft::mpi {

inline bool IsForeign(ProcessId process) {
  const ImpiWorld* world = ThisJob().impi.get();
  return world != nullptr && world->IsForeign(process);
}
inline bool AnyForeign(std::span<const ProcessId> processes) {
  const ImpiWorld* world = ThisJob().impi.get();
  return world != nullptr && world->AnyForeign(processes);
}

// See impi/enter_job.h.
Error EnterImpiJob(Job& job);

// The contexts of a communicator that spans clients, between StartDevice and StopDevice. Open gives `comm` those that stand for `on_wire` (messages) and the
// next one (collectives); MPI_ERR_OTHER: this process has no number for it. Close gives them back. MPI_COMM_WORLD has `on_wire` 0.
Error OpenForeignContext(Comm& comm, uint64_t on_wire);
void CloseForeignContext(ContextId context);

}  // namespace weft::mpi

#endif  // MPI_HYBRID_P2P_FOREIGN_H_
