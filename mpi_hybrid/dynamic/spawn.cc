#include "mpi_hybrid/dynamic/spawn.h"

#include <mpi.h>

#include <algorithm>
#include <string>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/datatype/datatype.h"
#include "mpi_hybrid/dynamic/beside.h"
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
  pmi::Client::Spawned spawned;
  RunBeside([&] { spawned = launcher.Spawn(order.commands, {{pmi::kParentPort, *port}}); });
  for (size_t i = 0; i < count && i < spawned.errors.size(); ++i) (*errors)[i] = spawned.errors[i] == 0 ? MPI_SUCCESS : MPI_ERR_SPAWN;
  if (spawned.problem.empty()) return {};
  for (int& error : *errors) error = MPI_ERR_SPAWN;  // all or none
  return Error(MPI_ERR_SPAWN, spawned.problem);
}

// The root's result and its list, at all ranks that it reaches.
Error Tell(int root, Comm& comm, const Error& met, std::vector<int>* errors) {
  const Datatype& integer = *Datatype::Find(MPI_INT);
  int header[2] = {met.mpi_class(), static_cast<int>(errors->size())};
  Error told = Broadcast(header, 2, integer, root, comm);
  if (told.ok()) {
    errors->resize(static_cast<size_t>(header[1]));
    told = Broadcast(errors->data(), header[1], integer, root, comm);
  } else {
    ++comm.next_collective;  // counted as by the rest
  }
  if (!met.ok()) return met;
  WEFT_MPI_TRY(std::move(told));
  if (header[0] == MPI_SUCCESS) return {};
  return Error(header[0], "rank " + std::to_string(root) + ", the root, had an error of this class");
}

// Of the processes that were the parents; empty: there are none, or they are left. Process-wide, as the job is.
std::vector<JobId> g_parents_jobs;

bool IsOfParents(ProcessId process) {
  const ProcessTable& processes = ThisJob().processes;
  return !processes.IsOfWorld(process) &&
         std::find(g_parents_jobs.begin(), g_parents_jobs.end(), processes.NameOf(process).job) != g_parents_jobs.end();
}

// How often the communicator holds such.
int HoldsOnParents(const Comm& comm) {
  if (!comm.holds_members) return 0;
  auto count = std::count_if(comm.local->members.begin(), comm.local->members.end(), IsOfParents);
  if (comm.inter) count += std::count_if(comm.remote->members.begin(), comm.remote->members.end(), IsOfParents);
  return static_cast<int>(count) + (comm.local_comm ? HoldsOnParents(*comm.local_comm) : 0);
}

}  // namespace

Error SpawnGroup(const SpawnOrder* order, int root, Comm& comm, std::vector<int>* errors, Ref<Comm>* made) {
  *made = nullptr;
  errors->clear();
  Meeting meeting;
  Error met;
  if (comm.rank == root) met = Start(*order, &meeting.port, errors);
  Error told = Tell(root, comm, met, errors);
  // Also by those to whom the root's word did not come, as when another died: nobody waits for them.
  meeting.refusal = told;
  Error accepted = AcceptGroup(comm.rank == root ? &meeting : nullptr, root, comm, made);
  if (!meeting.port.empty()) (void)Ports::Instance().Close(meeting.port);
  if (told.ok()) return accepted;
  *made = nullptr;
  return told;
}

Error MeetParents(Ref<Comm>* parents) {
  *parents = nullptr;
  Job& job = ThisJob();
  if (!job.pmi->spawned()) return {};
  const auto port = job.pmi->Get(pmi::kParentPort);
  if (!port.ok()) return {};  // whoever spawned this job is no MPI program
  const Meeting meeting{.port = *port, .deadline = std::nullopt, .refusal = {}};
  WEFT_MPI_TRY(ConnectGroup(&meeting, 0, World(), parents));
  for (const ProcessId process : (*parents)->remote->members) {
    if (!IsOfParents(process)) g_parents_jobs.push_back(job.processes.NameOf(process).job);
  }
  return {};
}

void LeaveParents(const Comm& comm) {
  const Job& job = ThisJob();
  const int holds = HoldsOnParents(comm);
  if (holds == 0 || holds != job.processes.HoldsOf(g_parents_jobs)) return;
  g_parents_jobs.clear();
  RunBeside([&] { (void)job.pmi->LeaveSpawner(); });  // without a launcher that listens nothing changes
}

}  // namespace weft::mpi
