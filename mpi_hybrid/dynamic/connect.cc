#include "mpi_hybrid/dynamic/connect.h"

#include <utility>

#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/dynamic/parting.h"

namespace weft::mpi {
namespace {

using Meet = Error (Ports::*)(const std::string&, Ports::Deadline, Ref<Comm>*);

Error MeetGroup(Meet meet, const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made) {
  StartParting();
  Ref<Comm> bridge;
  Error met;
  if (comm.rank == root) {
    met = meeting->refusal;
    if (met.ok()) met = (Ports::Instance().*meet)(meeting->port, meeting->deadline, &bridge);
  }
  return CreateInter(comm, root, bridge.get(), /*remote_leader=*/0, /*tag=*/0, made, met);
}

}  // namespace

Error AcceptGroup(const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made) {
  return MeetGroup(&Ports::Accept, meeting, root, comm, made);
}

Error ConnectGroup(const Meeting* meeting, int root, Comm& comm, Ref<Comm>* made) {
  return MeetGroup(&Ports::Connect, meeting, root, comm, made);
}

Error Disconnect(Ref<Comm> comm) {
  comm = nullptr;
  AwaitParting();
  return {};
}

}  // namespace weft::mpi
