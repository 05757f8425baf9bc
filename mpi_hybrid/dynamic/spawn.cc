#include "mpi_hybrid/dynamic/spawn.h"

#include <mpi.h>

#include <string>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/dynamic/connect.h"

namespace weft::mpi {
namespace {

// Has the launcher start them; the port that they will come to.
Error Start(const SpawnOrder& order, std::string* port, std::vector<int>* errors) {
  WEFT_MPI_TRY(Error(order.refusal));
  size_t count = 0;
  for (const pmi::SpawnCommand& command : order.commands) count += static_cast<size_t>(command.processes);
  errors->assign(count, MPI_ERR_SPAWN);
  pmi::Client& launcher = *ThisJob().pmi;
  WEFT_MPI_TRY(Ports::Instance().Open(port));
  const pmi::Client::Spawned spawned = launcher.Spawn(order.commands, {{pmi::kParentPort, *port}});
  for (size_t i = 0; i < count && i < spawned.errors.size(); ++i) (*errors)[i] = spawned.errors[i] == 0 ? MPI_SUCCESS : MPI_ERR_SPAWN;
  if (spawned.problem.empty()) return {};
  for (int& error : *errors) error = MPI_ERR_SPAWN;  // all or none
  return Error(MPI_ERR_SPAWN, spawned.problem);
}

// The root's result and its list, at all ranks.
Error Tell(int root, Comm& comm, const Error& met, std::vector<int>* errors) {
  const Datatype& integer = *Datatype::Find(MPI_INT);
  int header[2] = {met.mpi_class(), static_cast<int>(errors->size())};
  WEFT_MPI_TRY(Broadcast(header, 2, integer, root, comm));
  errors->resize(static_cast<size_t>(header[1]));
  WEFT_MPI_TRY(Broadcast(errors->data(), header[1], integer, root, comm));
  if (!met.ok() || header[0] == MPI_SUCCESS) return met;
  return Error(header[0], "rank " + std::to_string(root) + ", the root, met with an error of this class");
}

}  // namespace

Error SpawnGroup(const SpawnOrder* order, int root, Comm& comm, std::vector<int>* errors, Ref<Comm>* made) {
  *made = nullptr;
  errors->clear();
  Meeting meeting;
  Error met;
  if (comm.rank == root) met = Start(*order, &meeting.port, errors);
  Error told = Tell(root, comm, met, errors);
  if (told.ok()) told = AcceptGroup(comm.rank == root ? &meeting : nullptr, root, comm, made);
  if (!meeting.port.empty()) (void)Ports::Instance().Close(meeting.port);
  return told;
}

Error MeetParents(Ref<Comm>* parents) {
  *parents = nullptr;
  Job& job = ThisJob();
  if (!job.pmi->spawned()) return {};
  const auto port = job.pmi->Get(pmi::kParentPort);
  if (!port.ok()) return {};  // whoever spawned this job is no MPI program
  const Meeting meeting{.port = *port, .deadline = std::nullopt, .refusal = {}};
  return ConnectGroup(&meeting, 0, World(), parents);
}

}  // namespace weft::mpi
