#include "mpi_hybrid/rma/incoming.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace weft::mpi::rma {

Incoming::~Incoming() {
  if (qp != nullptr) rdma_destroy_qp(id);
  if (id != nullptr) rdma_destroy_id(id);
}

// The places of connections that are gone are used again. So that a late completion is not taken for one of the next connection there, the number has the
// low bits of a count of all connections above the place.
Incoming& IncomingTable::Add(ProcessId process, rdma_cm_id* id) {
  const auto free = std::find(places_.begin(), places_.end(), nullptr);
  const auto place = static_cast<uint32_t>(free - places_.begin());
  WEFT_CHECK(place <= kPlaceMask);
  if (free == places_.end()) places_.emplace_back();
  auto incoming = std::make_unique<Incoming>();
  incoming->index = made_++ << kPlaceBits | place;
  incoming->process = process;
  incoming->id = id;
  return *(places_[place] = std::move(incoming));
}

Incoming* IncomingTable::Find(uint32_t index) const {
  const uint32_t place = index & kPlaceMask;
  Incoming* const incoming = place < places_.size() ? places_[place].get() : nullptr;
  return incoming != nullptr && incoming->index == index ? incoming : nullptr;
}

std::unique_ptr<Incoming> IncomingTable::Take(const Incoming& incoming) { return std::move(places_[incoming.index & kPlaceMask]); }

void IncomingTable::Drop(Incoming& incoming, const std::string& why) {
  if (!incoming.bad.empty()) return;
  incoming.bad = why;
  dropped_.push_back(incoming.index);
}

Incoming& IncomingTable::NextDropped() {
  Incoming& incoming = *Find(dropped_.back());
  dropped_.pop_back();
  return incoming;
}

}  // namespace weft::mpi::rma
