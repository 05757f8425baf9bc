#include "mpi_hybrid/comm/communicator.h"

#include <numeric>
#include <unordered_map>
#include <utility>

#include "mpi_hybrid/comm/context_pool.h"
#include "mpi_hybrid/core/job.h"

namespace weft::mpi {
namespace {

// Never destroyed: handles may be looked up while the program's static objects end.
HandleTable<Comm>& Comms() {
  static auto& table = *new HandleTable<Comm>(HandleKind::kComm);
  return table;
}

std::unordered_map<uint64_t, Comm*>& ByIdentity() {
  static auto& comms = *new std::unordered_map<uint64_t, Comm*>;
  return comms;
}

// Raw, each owning a reference: looked up by every call of the program.
Comm* g_world = nullptr;
Comm* g_self = nullptr;
Comm* g_parents = nullptr;  // owns nothing

Comm* MakePredefined(MPI_Comm handle, const char* name, ContextId context, int rank, std::vector<ProcessId> members) {
  auto* comm = new Comm;
  comm->AddRef();
  comm->handle = handle;
  comm->name = name;
  comm->send_context = comm->receive_context = context;
  comm->rank = rank;
  comm->local = comm->remote = MakeGroup(std::move(members));
  return comm;
}

void Hold(const Group& group, int communicators) {
  for (const ProcessId process : group.members) ThisJob().processes.Hold(process, communicators);
}

}  // namespace

void Comm::HoldMembers() {
  WEFT_CHECK(!holds_members);
  holds_members = true;
  Hold(*local, 1);
  if (inter) Hold(*remote, 1);
}

Comm::~Comm() {
  if (holds_members) {
    Hold(*local, -1);
    if (inter) Hold(*remote, -1);
  }
  if (identity_ != 0) ByIdentity().erase(identity_);
  // What was sent by a revoked one may still arrive.
  if (owns_context && !revoked) TheContextPool().Release(ContextPool::IdOf(receive_context));
}

void Comm::set_identity(uint64_t identity) {
  if (identity_ != 0) ByIdentity().erase(identity_);
  identity_ = identity;
  if (identity_ != 0) ByIdentity()[identity_] = this;
}

Comm* Comm::FindByIdentity(uint64_t identity) {
  const auto found = ByIdentity().find(identity);
  return found == ByIdentity().end() ? nullptr : found->second;
}

uint64_t Comm::IdentityOfChild(uint64_t number) const { return MixIdentity(identity_, number); }

// The finalizer of MurmurHash3, over a sum that depends on the order.
uint64_t MixIdentity(uint64_t a, uint64_t b) {
  uint64_t x = a * 0x9e3779b97f4a7c15 + b + 1;
  x = (x ^ x >> 33) * 0xff51afd7ed558ccd;
  x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53;
  return x ^ x >> 33;
}

Comm* Comm::FindOther(MPI_Comm handle) {
  if (handle == MPI_COMM_SELF) return g_self;
  return Comms().Find(handle);
}

MPI_Comm Comm::Give(const Ref<Comm>& comm) {
  WEFT_CHECK(comm->handle == MPI_COMM_NULL && !comm->freed);
  comm->handle = Comms().Add(comm.get());
  comm->AddRef();
  return comm->handle;
}

void Comm::TakeBack(Comm& comm) {
  if (g_parents == &comm) g_parents = nullptr;
  Comms().Remove(comm.handle);
  comm.handle = MPI_COMM_NULL;
  comm.freed = true;
  comm.Release();
}

Comm& World() {
  WEFT_CHECK(g_world != nullptr);
  return *g_world;
}

Comm& Self() {
  WEFT_CHECK(g_self != nullptr);
  return *g_self;
}

bool IsPredefined(const Comm& comm) { return &comm == g_world || &comm == g_self; }

Comm* Parents() { return g_parents; }
void SetParents(Comm* comm) { g_parents = comm; }

void MakeWorld(int rank, int size) {
  std::vector<ProcessId> everyone(static_cast<size_t>(size));
  std::iota(everyone.begin(), everyone.end(), 0);
  MakeWorld(rank, std::move(everyone));
}

void MakeWorld(int rank, std::vector<ProcessId> everyone) {
  TheContextPool() = ContextPool();
  const ProcessId self = everyone[static_cast<size_t>(rank)];
  g_world = Comm::world_ = MakePredefined(MPI_COMM_WORLD, "MPI_COMM_WORLD", 0, rank, std::move(everyone));
  g_self = MakePredefined(MPI_COMM_SELF, "MPI_COMM_SELF", 2, 0, {self});
}

void DropWorld() {
  Comm::world_ = nullptr;
  if (Comm* world = std::exchange(g_world, nullptr)) world->Release();
  if (Comm* self = std::exchange(g_self, nullptr)) self->Release();
}

}  // namespace weft::mpi
