#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/page_size.h"
#include "base/settings.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/coll/make_comm.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/rma/rdma_window.h"
#include "mpi_hybrid/rma/service.h"
#include "mpi_hybrid/rma/window_hints.h"

// Construction and the end of windows.
namespace weft::mpi {

MPI_Win Window::Give(const Ref<Window>& window) {
  window->AddRef();
  return window->handle = table_.Add(window.get());
}

void Window::TakeBack(Window& window) {
  table_.Remove(window.handle);
  window.handle = MPI_WIN_NULL;
  window.Release();
}

namespace rma {
namespace {


// What each rank tells the others.
struct Card {
  uint64_t base = 0, size = 0;
  int64_t unit = 1;
  uint32_t key = 0, window = 0;
  int32_t error = MPI_SUCCESS;  // its class, when this rank failed
  bool atomics = false;         // the memory is open to atomics of the RNIC
  transport::SocketAddress address;
  Nonce nonce{};
};

// A window of `flavor` over a duplicate of `comm`; why this process cannot make its part. The caller finishes it in any
// case, over `comm`: where a process dies, what fails here need not fail at all others, who wait in the next step. A
// window without a duplicate is never given out.
Error MakeWindow(int flavor, int unit, Comm& comm, const Info* info, Ref<RdmaWindow>* made) {
  Ref<Comm> over;
  Error failed = Duplicate(comm, &over);
  if (!failed.ok()) over = Ref<Comm>(&comm);
  *made = MakeRef<RdmaWindow>(std::move(over));
  (*made)->flavor = flavor;
  (*made)->displacement_unit = unit;
  (*made)->info = HintsOfWindow(flavor, info);
  return failed;
}

Error Finish(const Ref<RdmaWindow>& window, Comm& parent, Error failed, Ref<Window>* made) {
  failed = window->MeetHost(parent, std::move(failed));
  if (failed.ok()) failed = window->Reach();
  failed = window->Publish(parent, failed);
  WEFT_MPI_TRY(std::move(failed));
  *made = Ref<Window>(window.get());
  return {};
}

}  // namespace

RdmaWindow::RdmaWindow(Ref<Comm> over)
    : epochs_(over->size()),
      host_(over->size()),
      same_host_(ProcessSettings().SharesMemory() == SameHost::kAuto && !ProcessSettings().NeedsWire()),
      peers_(static_cast<size_t>(over->size())) {
  comm = std::move(over);
  own_.fences.resize(peers_.size());
  own_.rank_of.assign(static_cast<size_t>(ThisJob().processes.limit()), -1);
  for (size_t rank = 0; rank < peers_.size(); ++rank) {
    peers_[rank].process = comm->peer(static_cast<int>(rank));
    own_.rank_of[static_cast<size_t>(peers_[rank].process)] = static_cast<int>(rank);
  }
}

RdmaWindow::~RdmaWindow() {
  LeaveService();
  for (const TargetWindow::Region& region : own_.regions) {
    if (region.mr != nullptr) ibv_dereg_mr(region.mr);
  }
  if (mr_ != nullptr) ibv_dereg_mr(mr_);
  if (allocated_ != nullptr) munmap(allocated_, allocated_bytes_);
}

void RdmaWindow::LeaveService() {
  if (!std::exchange(known_to_service_, false)) return;
  device_->service().Remove(own_.id);
  for (const Peer& peer : peers_) {
    if (Link* link = device_->Existing(peer.process); link != nullptr) link->SetPromised(own_.id, false);
  }
}

Error RdmaWindow::Reach() {
  if (all_here_) return {};
  WEFT_MPI_TRY(Device::Open(&device_));
  if (size == 0 || flavor == MPI_WIN_FLAVOR_SHARED) return {};
  mr_ = ibv_reg_mr(device_->domain(), base, static_cast<size_t>(size), device_->window_rights());
  own_.mr = mr_;
  if (mr_ != nullptr) {
    if (nobody_copies_ && device_->vouches_for_atomics()) own_.guard.by_rnic = own_.guard.atomics = true;
    return {};
  }
  return Error(MPI_ERR_BASE, "the window's " + std::to_string(size) +
                                 " bytes cannot be registered with the RDMA device: " + std::strerror(errno));
}

Error RdmaWindow::ShareMemory(Comm& parent, MPI_Aint bytes, bool contiguous, Error failed) {
  std::vector<MPI_Aint> sizes(peers_.size());
  const Datatype& aint = *Datatype::Find(MPI_AINT);
  if (Error met = AllGather({&bytes, 1, &aint}, {sizes.data(), 1, &aint}, parent); failed.ok()) failed = std::move(met);
  // Of a contiguous window too each part is aligned well enough for any element.
  size_t total = 0;
  for (MPI_Aint one : sizes) {
    share_offsets_.push_back(static_cast<MPI_Aint>(total));
    total += static_cast<size_t>(one);
    if (!contiguous) total = (total + PageSize() - 1) / PageSize() * PageSize();
  }
  WEFT_MPI_TRY(segment_.Make(parent, total, std::move(failed)));
  size = bytes;
  base = segment_.data() + share_offsets_[static_cast<size_t>(comm->rank)];
  return {};
}

// Taken by all, whatever each heard of the steps before: who left here, knowing that all are on this host or that somebody is
// dead, would be waited for by those who do not. Where the step before was one in memory nobody is waited for: a rank that failed in it fails in this
// one, too. Then ranks that reach one another have no more to tell.
Error RdmaWindow::Publish(Comm& parent, const Error& failed) {
  if (all_here_ && failed.ok() && MeetsInMemory(parent)) return {};
  Card card;
  card.error = failed.mpi_class();
  if (failed.ok() && !all_here_) {
    device_->service().Add(&own_);
    known_to_service_ = true;
    card.base = reinterpret_cast<uintptr_t>(base);
    card.size = static_cast<uint64_t>(size);
    card.unit = displacement_unit;
    card.key = mr_ == nullptr ? 0 : mr_->rkey;
    card.atomics = own_.guard.by_rnic;
    card.window = own_.id;
    card.address = device_->address();
    card.nonce = device_->nonce();
  }
  std::vector<Card> cards(peers_.size());
  const Datatype& byte = *Datatype::Find(MPI_BYTE);
  WEFT_MPI_TRY(AllGather({&card, sizeof card, &byte}, {cards.data(), sizeof card, &byte}, parent));
  if (!failed.ok()) return failed;
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const Card& its = cards[rank];
    if (its.error == MPI_SUCCESS) continue;
    return Error(its.error, "rank " + std::to_string(rank) + " could not make its part of the window");
  }
  if (all_here_) return {};
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    const Card& its = cards[rank];
    Peer& peer = peers_[rank];
    peer.base = its.base;
    peer.size = its.size;
    peer.unit = static_cast<int>(its.unit);
    peer.key = its.key;
    peer.window = its.window;
    peer.atomics = its.atomics;
    if (its.atomics && peer.here) peer.guard.by_rnic = peer.guard.atomics = true;
    if (static_cast<int>(rank) != comm->rank) device_->SetAddress(peer.process, its.address, its.nonce);
  }
  if (!device_->connects_at_once()) return {};
  for (const Peer& peer : peers_) {
    if (peer.process != comm->peer(comm->rank)) WEFT_MPI_TRY(device_->Prepare(peer.process));
  }
  for (const Peer& peer : peers_) {
    Link* link;
    if (peer.process != comm->peer(comm->rank)) WEFT_MPI_TRY(device_->Find(peer.process, &link));
  }
  return {};
}

// --- dynamic and shared windows ---

Error RdmaWindow::Attach(void* memory, MPI_Aint bytes) {
  if (flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return Error(MPI_ERR_RMA_FLAVOR, "MPI_Win_attach is for windows of MPI_Win_create_dynamic");
  if (bytes == 0) return {};
  const uint64_t first = reinterpret_cast<uintptr_t>(memory), last = first + static_cast<uint64_t>(bytes);
  for (const TargetWindow::Region& region : own_.regions) {
    const uint64_t known = reinterpret_cast<uintptr_t>(region.base);
    if (first < known + region.size && known < last) {
      return Error(MPI_ERR_RMA_ATTACH, "the memory overlaps memory that is already attached to the window");
    }
  }
  ibv_mr* mr = ibv_reg_mr(device_->domain(), memory, static_cast<size_t>(bytes), device_->window_rights());
  if (mr == nullptr) {
    return Error(MPI_ERR_RMA_ATTACH,
                 std::to_string(bytes) + " bytes cannot be registered with the RDMA device: " + std::strerror(errno));
  }
  std::lock_guard lock(device_->service().mutex());
  own_.regions.push_back({static_cast<uint8_t*>(memory), static_cast<uint64_t>(bytes), mr});
  return {};
}

Error RdmaWindow::Detach(const void* memory) {
  if (flavor != MPI_WIN_FLAVOR_DYNAMIC)
    return Error(MPI_ERR_RMA_FLAVOR, "MPI_Win_detach is for windows of MPI_Win_create_dynamic");
  ibv_mr* mr = nullptr;
  {
    std::lock_guard lock(device_->service().mutex());
    for (auto region = own_.regions.begin(); region != own_.regions.end(); ++region) {
      if (region->base != memory) continue;
      mr = region->mr;
      own_.regions.erase(region);
      break;
    }
  }
  if (mr == nullptr) return Error(MPI_ERR_RMA_ATTACH, "no memory that begins there is attached to the window");
  ibv_dereg_mr(mr);
  return {};
}

Error RdmaWindow::SharedQuery(int rank, MPI_Aint* bytes, int* unit, void** memory) {
  if (flavor != MPI_WIN_FLAVOR_SHARED) {
    return Error(MPI_ERR_RMA_FLAVOR, "MPI_Win_shared_query is for windows of MPI_Win_allocate_shared");
  }
  if (rank == MPI_PROC_NULL) {  // the first rank with memory
    rank = 0;
    while (rank + 1 < comm->size() && peers_[static_cast<size_t>(rank)].size == 0) ++rank;
  }
  WEFT_MPI_TRY(CheckRank(rank));
  const Peer& peer = peers_[static_cast<size_t>(rank)];
  *bytes = static_cast<MPI_Aint>(peer.size);
  *unit = peer.unit;
  *memory = peer.size != 0 ? peer.local : nullptr;  // programs compare with null, which is what MPICH gives
  return {};
}

// --- the end ---

Error RdmaWindow::Free() {
  WEFT_MPI_TRY(epochs_.MayFree());
  Error error = Meet();  // nobody works on this window any more
  for (Peer& peer : peers_) {
    if (error.ok() && peer.parcel != nullptr) peer.parcel->GiveBack();
  }
  LeaveService();
  if (error.ok() && range_ && overwritten_.empty()) {
    std::vector<std::shared_ptr<host::Process>> processes;
    for (size_t rank = 0; rank < peers_.size(); ++rank) processes.push_back(host_.of(static_cast<int>(rank)).process);
    range_.MayBeReused(std::move(processes));
  }
  return error;
}

}  // namespace rma

using rma::RdmaWindow;

Error CreateWindow(void* base, MPI_Aint size, int displacement_unit, Comm& comm, const Info* info, Ref<Window>* made) {
  Ref<RdmaWindow> window;
  Error failed = rma::MakeWindow(MPI_WIN_FLAVOR_CREATE, displacement_unit, comm, info, &window);
  window->base = base;
  window->size = size;
  failed = window->ShareRange(comm, 0, std::move(failed));
  return rma::Finish(window, comm, std::move(failed), made);
}

Error AllocateWindow(MPI_Aint size, int displacement_unit, Comm& comm, const Info* info, Ref<Window>* made) {
  Ref<RdmaWindow> window;
  Error failed = rma::MakeWindow(MPI_WIN_FLAVOR_ALLOCATE, displacement_unit, comm, info, &window);
  failed = window->ShareRange(comm, size, std::move(failed));
  if (failed.ok()) failed = window->Allocate(size);
  return rma::Finish(window, comm, std::move(failed), made);
}

Error AllocateSharedWindow(MPI_Aint size, int displacement_unit, Comm& comm, const Info* info, Ref<Window>* made) {
  Ref<RdmaWindow> window;
  Error failed = rma::MakeWindow(MPI_WIN_FLAVOR_SHARED, displacement_unit, comm, info, &window);
  const bool contiguous = window->info->Get("alloc_shared_noncontig") != "true";
  failed = window->ShareMemory(comm, size, contiguous, std::move(failed));
  failed = window->ShareRange(comm, 0, std::move(failed));
  return rma::Finish(window, comm, std::move(failed), made);
}

Error CreateDynamicWindow(Comm& comm, const Info* info, Ref<Window>* made) {
  Ref<RdmaWindow> window;
  Error failed = rma::MakeWindow(MPI_WIN_FLAVOR_DYNAMIC, 1, comm, info, &window);
  window->base = MPI_BOTTOM;
  return rma::Finish(window, comm, std::move(failed), made);
}

void StopWindows() {
  rma::Device::Close();
  rma::HostRange::Close();
}

void ForgetInWindows(ProcessId process) {
  if (rma::Device* device = rma::Device::current()) device->Forget(process);
}

}  // namespace weft::mpi
