#include "mpi_hybrid/rma/host_range.h"

#include <atomic>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/rma/host_segment.h"
#include "mpi_hybrid/shm/this_node.h"

namespace weft::mpi::rma {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

bool AllAreInSegment(const Comm& comm) {
  const shm::NodeSegment* const node = shm::ThisNode();
  if (node == nullptr || comm.size() < 2) return false;
  for (int rank = 0; rank < comm.size(); ++rank) {
    if (!node->PlaceOf(comm.peer(rank))) return false;
  }
  return true;
}

}  // namespace

struct HostRange::Head {
  std::atomic<uint32_t> done;  // ranks
};

// What all hear, all decide alike. What fails at one rank only, mapping it, they agree on.
Error HostRange::Make(Comm& comm, bool wants, size_t bytes) {
  const Datatype& number = *Datatype::Find(MPI_UINT64_T);
  uint64_t mine = wants && AllAreInSegment(comm) ? bytes : kNone;
  std::vector<uint64_t> wanted(static_cast<size_t>(comm.size()));
  WEFT_MPI_TRY(AllGather({&mine, 1, &number}, {wanted.data(), 1, &number}, comm));
  size_t total = shm::kPage;  // of the head
  for (const uint64_t one : wanted) {
    starts_.push_back(total);
    if (one > (SIZE_MAX >> 1) - total) return {};
    total += shm::RoundUp(static_cast<size_t>(one), shm::kPage);
  }
  starts_.push_back(total);
  shm::NodeSegment& node = *shm::ThisNode();
  uint64_t offset = comm.rank == 0 ? node.Reserve(total).value_or(kNone) : kNone;
  if (offset != kNone && ReserveMemory(node.memory_descriptor(), offset, total) != 0) offset = kNone;
  WEFT_MPI_TRY(Broadcast(&offset, 1, number, 0, comm));
  if (offset == kNone) return {};
  shm::Mapping mapping = node.Map(offset, total);
  int mapped = mapping ? 1 : 0, all = 0;
  WEFT_MPI_TRY(AllReduce(&mapped, &all, 1, *Datatype::Find(MPI_INT), *Op::Find(MPI_MIN), comm));
  if (all == 0) return {};
  offset_ = offset;
  mapping_ = std::move(mapping);
  return {};
}

HostRange::~HostRange() {
  if (!mapping_) return;
  Head& head = *reinterpret_cast<Head*>(mapping_.data());
  const shm::NodeSegment* const node = shm::ThisNode();
  if (head.done.fetch_add(1) + 2 == starts_.size() && node != nullptr) node->Discard(offset_, mapping_.size());
}

}  // namespace weft::mpi::rma
