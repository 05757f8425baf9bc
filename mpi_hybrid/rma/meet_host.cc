#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>

#include "base/address_space_mark.h"
#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/core/job.h"
#include "mpi_hybrid/host/host_number.h"
#include "mpi_hybrid/host/this_host.h"
#include "mpi_hybrid/rma/rdma_window.h"

// Who of a window's ranks is on this host, and how each is reached. Every process finds out for itself about each other
// one, by trying: it depends on users, namespaces, containers and Yama, on memory and on descriptors, and need not be the
// same both ways. So nothing is agreed on but whether all reach all.
namespace weft::mpi::rma {
namespace {

constexpr size_t kPage = 4096;

size_t WholePages(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

}  // namespace

// What each rank tells the others: a claim. Its cookie, in memory that only processes of its user map, is the proof.
struct RdmaWindow::HostCard {
  uint64_t host = 0;  // HostNumber; 0: nobody is to try
  uint64_t base = 0, size = 0;
  int64_t unit = 1;
  int32_t error = MPI_SUCCESS;  // its class, when this rank cannot make its part
  int32_t pid = 0, fd = -1;     // the segment, unless all are in a range
  uint64_t segment_bytes = 0;
  uint64_t memory_at = 0;       // where in that the window's memory is; 0: it is not there
  HostMemory::Span span;        // ... of a window of MPI_Win_create: what it is in, of MPI_Alloc_mem
  uint64_t offset_in_span = 0;
  uint64_t control_address = 0;
  uint64_t mark = 0;            // AddressSpaceMark; 0: nobody copies from or to its private memory
  host::BellName bell;
  Nonce cookie{};
};

// Also of those who have failed: who left here would be waited for.
Error RdmaWindow::ShareRange(Comm& parent, MPI_Aint bytes, Error failed) {
  const bool fits = static_cast<size_t>(bytes) < SIZE_MAX / 2;
  Error met = range_.Make(parent, failed.ok() && same_host_ && fits, WholePages(ControlBlock::Bytes(comm->size())) + static_cast<size_t>(bytes));
  return failed.ok() ? std::move(met) : std::move(failed);
}

Error RdmaWindow::Allocate(MPI_Aint bytes) {
  size = bytes;
  const size_t control = WholePages(ControlBlock::Bytes(comm->size()));
  if (bytes > 0 && range_) {
    base = range_.of(comm->rank) + control;
    return {};
  }
  if (bytes > 0 && same_host_ && comm->size() > 1 && static_cast<size_t>(bytes) < SIZE_MAX / 2 &&
      own_segment_.Make(control + static_cast<size_t>(bytes)) == 0) {
    base = own_segment_.data() + control;
    return {};
  }
  if (bytes == 0) return {};
  allocated_bytes_ = WholePages(static_cast<size_t>(bytes));
  void* memory = mmap(nullptr, allocated_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    return Error(MPI_ERR_NO_MEM, std::to_string(bytes) + " bytes for the window: " + std::strerror(errno));
  }
  base = allocated_ = memory;
  return {};
}

void RdmaWindow::MakeControl() {
  const int ranks = comm->size();
  const size_t bytes = ControlBlock::Bytes(ranks);
  const bool in_memory_of_its_own = !range_ && flavor == MPI_WIN_FLAVOR_ALLOCATE && size > 0 && own_segment_.data() == nullptr;
  const bool shares = !range_ && same_host_ && ranks > 1 && flavor != MPI_WIN_FLAVOR_DYNAMIC && !in_memory_of_its_own;
  if (shares && own_segment_.data() == nullptr) (void)own_segment_.Make(bytes);
  uint8_t* at = range_ ? range_.of(comm->rank) : own_segment_.data();
  if (at == nullptr) {
    own_control_ = std::make_unique<uint8_t[]>(bytes + alignof(ControlHead));
    const auto address = reinterpret_cast<uintptr_t>(own_control_.get());
    at = own_control_.get() + (alignof(ControlHead) - address % alignof(ControlHead)) % alignof(ControlHead);
  }
  own_.control = ControlBlock(at, ranks);
  own_.control.head->cookie = NewNonce();
  own_.host = &host_;
  own_.locks = LockManager(WindowLock(own_.control));
  HostRanks::One& me = host_.of(comm->rank);
  me.control = own_.control;
  me.bell = host::OwnBell().name();
  if (const auto* const segment = host::ThisHost()) me.place = segment->place();
}

// What is mapped from the process's own descriptors, or read in it, proves whose the number is. A range is there without that: the segment knows.
bool RdmaWindow::HasNumber(ProcessId process, int32_t pid) const {
  if (!range_) return true;
  const std::optional<int> place = host::ThisHost()->PlaceOf(process);
  return place && host::ThisHost()->PidOf(*place) == pid;
}

// Where what the rank shares is mapped here, `*bytes` long. Null: it cannot be.
uint8_t* RdmaWindow::MapOf(const HostCard& card, int rank, size_t* bytes) {
  if (range_) {
    *bytes = range_.bytes_of(rank);
    return range_.of(rank);
  }
  host::SealedMemory& segment = host_.of(rank).segment;
  if (card.fd < 0 || card.segment_bytes < ControlBlock::Bytes(comm->size()) || card.segment_bytes > SIZE_MAX / 2) return nullptr;
  if (segment.Map(card.pid, card.fd, card.segment_bytes) != 0) return nullptr;
  *bytes = card.segment_bytes;
  return segment.data();
}

bool RdmaWindow::Meet(const HostCard& card, int rank) {
  HostRanks::One& one = host_.of(rank);
  const size_t control = ControlBlock::Bytes(comm->size());
  size_t bytes;
  // Before the proofs: what they prove of the number holds for that process, if it is there behind them.
  std::shared_ptr<host::Process> process = host::Process::Of(card.pid);
  uint8_t* const at = MapOf(card, rank, &bytes);
  if (at == nullptr) return false;
  const ControlBlock found(at, comm->size());
  Peer& peer = peers_[static_cast<size_t>(rank)];
  bool reached = found.head->cookie == card.cookie &&
                 (card.memory_at == 0 || (card.memory_at >= control && card.memory_at <= bytes && card.size <= bytes - card.memory_at));
  if (reached && flavor == MPI_WIN_FLAVOR_ALLOCATE) {
    reached = card.memory_at != 0 || card.size == 0;
    peer.local = at + card.memory_at;
  } else if (reached && flavor == MPI_WIN_FLAVOR_CREATE) {
    peer.private_memory = ProcessMemory::Of({.pid = card.pid, .mark = card.mark, .cookie_address = card.control_address, .cookie = card.cookie},
                                            ProcessMemory::Access::kReadAndWrite);
    if (peer.of_host) peer.to_map = std::make_unique<HostMemory::Span>(card.span);
    if (peer.private_memory == nullptr && peer.to_map != nullptr) MapMemory(peer, card.pid);
    reached = peer.private_memory != nullptr || peer.mapped != nullptr;
  }
  if (!reached || !HasNumber(peer.process, card.pid) || process->HasEnded()) {
    one.segment.Unmap();
    peer.local = nullptr;
    peer.private_memory = nullptr;
    peer.to_map = nullptr;
    peer.mapped = nullptr;
    return false;
  }
  one.control = found;
  one.process = std::move(process);
  one.bell = card.bell;
  if (const auto* const segment = host::ThisHost()) one.place = segment->PlaceOf(peer.process).value_or(-1);
  return true;
}

// What others may map, nobody need: a process that has no room for it copies.
void RdmaWindow::MapMemory(Peer& peer) { MapMemory(peer, host_.of(RankOf(peer)).process->pid()); }

void RdmaWindow::MapMemory(Peer& peer, pid_t pid) {
  const std::unique_ptr<HostMemory::Span> span = std::move(peer.to_map);
  if (peer.offset_in_span > span->bytes || peer.size > span->bytes - peer.offset_in_span) return;
  peer.mapped = MappedSpan::Find(pid, *span);
  if (peer.mapped == nullptr) return;
  peer.local = peer.mapped->data() + peer.offset_in_span;
  peer.private_memory = nullptr;
}

AccumulateGuard RdmaWindow::GuardOf(int rank) {
  if (flavor == MPI_WIN_FLAVOR_SHARED && !all_here_) return {.mutex = segment_.mutex()};
  const bool of_host = peers_[static_cast<size_t>(rank)].of_host;
  return {.atomics = flavor == MPI_WIN_FLAVOR_ALLOCATE || flavor == MPI_WIN_FLAVOR_SHARED || of_host,
          .control = host_.control(rank),
          .host = &host_,
          .target = rank,
          .me = comm->rank,
          .served = !all_here_};
}

// Each of the two steps is taken by all: what fails at one process may have gone well at another.
Error RdmaWindow::MeetHost(Comm& parent, Error failed) {
  own_.dynamic = flavor == MPI_WIN_FLAVOR_DYNAMIC;
  MakeControl();
  own_.base = static_cast<uint8_t*>(base);
  own_.size = static_cast<uint64_t>(size);
  if (!own_.dynamic) {
    failed = GatherCards(parent, std::move(failed));
    const int mine[] = {failed.ok() && same_host_ && ReachesAll(), failed.ok() && !Copies()};
    int all[std::size(mine)] = {};
    Error met = AllReduce(mine, all, std::size(mine), *Datatype::Find(MPI_INT), *Op::Find(MPI_MIN), parent);
    all_here_ = met.ok() && all[0] != 0;
    nobody_copies_ = met.ok() && all[1] != 0;
    if (failed.ok()) failed = std::move(met);
  }
  own_segment_.CloseDescriptor();
  if (failed.ok()) SettleWays();
  return failed;
}

Error RdmaWindow::GatherCards(Comm& parent, Error failed) {
  HostCard card;
  card.error = failed.mpi_class();
  card.base = reinterpret_cast<uintptr_t>(base);
  card.size = static_cast<uint64_t>(size);
  card.unit = displacement_unit;
  if (same_host_) card.host = host::HostNumber();
  if (const uint8_t* const shared = range_ ? range_.of(comm->rank) : own_segment_.data(); shared != nullptr) {
    card.pid = getpid();
    card.fd = own_segment_.fd();
    card.segment_bytes = own_segment_.size();
    if (flavor == MPI_WIN_FLAVOR_ALLOCATE && size > 0) card.memory_at = static_cast<uint64_t>(own_.base - shared);
    card.control_address = reinterpret_cast<uintptr_t>(own_.control.head);
    if (flavor == MPI_WIN_FLAVOR_CREATE) card.mark = AddressSpaceMark();
    card.bell = host::OwnBell().name();
    card.cookie = own_.control.head->cookie;
    if (flavor == MPI_WIN_FLAVOR_CREATE && HostMemory::OfThisProcess().Find(base, static_cast<size_t>(size), &own_memory_)) {
      card.span = own_memory_.span();
      card.offset_in_span = own_memory_.offset();
    }
  }
  std::vector<HostCard> cards(peers_.size());
  const Datatype& byte = *Datatype::Find(MPI_BYTE);
  Error met = AllGather({&card, sizeof card, &byte}, {cards.data(), sizeof card, &byte}, parent);
  WEFT_MPI_TRY(std::move(failed));
  WEFT_MPI_TRY(std::move(met));
  for (size_t rank = 0; rank < cards.size(); ++rank) {
    if (cards[rank].error == MPI_SUCCESS) continue;
    return Error(cards[rank].error, "rank " + std::to_string(rank) + " could not make its part of the window");
  }
  for (int rank = 0; rank < comm->size(); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    const HostCard& its = cards[static_cast<size_t>(rank)];
    peer.base = its.base;
    peer.size = its.size;
    peer.unit = static_cast<int>(its.unit);
    peer.of_host = its.span.fd >= 0;
    peer.offset_in_span = its.offset_in_span;
    const bool beside = card.host != 0 && its.host == card.host && rank != comm->rank;
    neighbors_ |= beside;
    peer.here = rank == comm->rank || (beside && Meet(its, rank));
  }
  return {};
}

bool RdmaWindow::ReachesAll() const {
  return std::all_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.here; });
}

bool RdmaWindow::Copies() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.private_memory != nullptr || peer.to_map != nullptr; });
}

void RdmaWindow::SettleWays() {
  // All ranks say the same: they have one another's cards.
  takes_parcels_ = all_here_ && range_ && flavor == MPI_WIN_FLAVOR_CREATE && comm->size() > 1 &&
                   std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return peer.size != 0 && !peer.of_host; });
  for (int rank = 0; rank < comm->size(); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == comm->rank) {
      peer.here = true;
      peer.local = own_.dynamic ? nullptr : own_.base;
    } else if (flavor == MPI_WIN_FLAVOR_SHARED) {
      // Its memory is mapped in any case; who locks how is one thing for all.
      if (!all_here_) host_.of(rank).control = ControlBlock();
      peer.here = true;
    }
    if (!share_offsets_.empty()) peer.local = segment_.data() + share_offsets_[static_cast<size_t>(rank)];
    if (!peer.here) continue;
    peer.guard = GuardOf(rank);
    peer.guard.watch = &words_;
  }
  own_.guard = GuardOf(comm->rank);
  own_.guard.serves = true;
  if (all_here_) own_.guard.watch = &words_;  // there is no service: this rank carries out what others leave to it
  TellTheWays();
}

// For those who want to know, tests among them: how many targets are reached how.
void RdmaWindow::TellTheWays() {
  int memory = 0, copy = 0, rdma = 0;
  for (int rank = 0; rank < comm->size(); ++rank) {
    const Peer& peer = peers_[static_cast<size_t>(rank)];
    if (rank == comm->rank) continue;
    ++(!host_.control(rank) ? rdma : peer.private_memory != nullptr && peer.to_map == nullptr ? copy : memory);
  }
  info->Set("weft_ways", "memory=" + std::to_string(memory) + ",copy=" + std::to_string(copy) + ",rdma=" + std::to_string(rdma));
}

}  // namespace weft::mpi::rma
