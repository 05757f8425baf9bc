#include "mpi_hybrid/rma/host_range.h"

#include <atomic>
#include <optional>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/rma/host_segment.h"
#include "mpi_hybrid/shm/this_node.h"

namespace weft::mpi::rma {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

// By rank; empty: not all are in the segment.
std::vector<int> PlacesOf(const Comm& comm) {
  const shm::NodeSegment* const node = shm::ThisNode();
  if (node == nullptr || comm.size() < 2) return {};
  std::vector<int> places;
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::optional<int> place = node->PlaceOf(comm.peer(rank));
    if (!place) return {};
    places.push_back(*place);
  }
  return places;
}

}  // namespace

// In front of the parts.
struct HostRange::Head {
  std::atomic<uint8_t> done[shm::kMostPlaces];  // by rank
};

// What all hear, all decide alike. What fails at one rank only, mapping it, they agree on.
Error HostRange::Make(Comm& comm, bool wants, size_t bytes) {
  const Datatype& number = *Datatype::Find(MPI_UINT64_T);
  static_assert(sizeof(Head) <= shm::kPage);
  places_ = PlacesOf(comm);
  uint64_t mine = wants && !places_.empty() ? bytes : kNone;
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

// Of two that are done last each may see that all are: what is given back twice was so the first time. Who died is done, too.
HostRange::~HostRange() {
  const shm::NodeSegment* const node = shm::ThisNode();
  if (!mapping_ || node == nullptr) return;
  Head& head = *reinterpret_cast<Head*>(mapping_.data());
  for (size_t rank = 0; rank < places_.size(); ++rank) {
    if (places_[rank] == node->place()) head.done[rank] = 1;
  }
  for (size_t rank = 0; rank < places_.size(); ++rank) {
    if (head.done[rank] == 0 && node->IsPresent(places_[rank])) return;
  }
  node->Discard(offset_, mapping_.size());
}

}  // namespace weft::mpi::rma
