#include "mpi_hybrid/rma/host_range.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <optional>
#include <utility>

#include "mpi_hybrid/coll/collectives.h"
#include "mpi_hybrid/host/sealed_memory.h"
#include "mpi_hybrid/host/this_host.h"

namespace weft::mpi::rma {
namespace {

constexpr uint64_t kNone = ~uint64_t{0};

// By rank; empty: not all are in the segment.
std::vector<int> PlacesOf(const Comm& comm) {
  const host::Segment* const segment = host::ThisHost();
  if (segment == nullptr || comm.size() < 2) return {};
  std::vector<int> places;
  places.reserve(static_cast<size_t>(comm.size()));
  for (int rank = 0; rank < comm.size(); ++rank) {
    const std::optional<int> place = segment->PlaceOf(comm.peer(rank));
    if (!place) return {};
    places.push_back(*place);
  }
  return places;
}

}  // namespace

// In front of the parts.
struct HostRange::Head {
  std::atomic<uint8_t> done[host::kMostPlaces];  // by rank: it has neither a window in the range nor keeps it for one
};

// What a rank tells the others.
struct HostRange::Card {
  uint64_t wanted = kNone;  // bytes
  uint64_t offers[RangeCache::kMostOffered] = {kNone, kNone, kNone};  // where ranges that it keeps are
};

RangeCache& HostRange::Cache() {
  static auto* const cache = new RangeCache;
  return *cache;
}

void HostRange::Close() { Cache().Clear(); }

// What all hear, all decide alike. What fails at one rank only, mapping it, they agree on.
Error HostRange::Make(Comm& comm, bool wants, size_t bytes) {
  static_assert(sizeof(Head) <= host::kPage);
  key_ = {PlacesOf(comm), host::RoundUp(bytes, host::kPage)};
  Card mine;
  RangeCache::Ranges offers;
  if (wants && !key_.places.empty()) {
    mine.wanted = bytes;
    // They leave the cache meanwhile: another thread may make a window of the same ranks.
    offers = Cache().TakeOffers(key_);
    for (size_t i = 0; i < offers.size(); ++i) mine.offers[i] = offers[i].offset;
  }
  std::vector<Card> cards(static_cast<size_t>(comm.size()));
  const Datatype& byte = *Datatype::Find(MPI_BYTE);
  if (Error met = AllGather({&mine, sizeof mine, &byte}, {cards.data(), sizeof mine, &byte}, comm); !met.ok()) {
    for (const RangeCache::Range& range : offers) GiveUp(key_.places, range);
    return met;
  }
  if (TakeCommon(cards, std::move(offers), comm.rank)) return {};
  std::vector<size_t> starts;
  size_t total = host::kPage;  // of the head
  for (const Card& card : cards) {
    starts.push_back(total);
    if (card.wanted > (SIZE_MAX >> 1) - total) return {};
    total += host::RoundUp(static_cast<size_t>(card.wanted), host::kPage);
  }
  starts.push_back(total);
  return MakeNew(comm, std::move(starts));
}

// Who offers a range has no window in it any more, and has part of the same length for the new one. So what all offer is free, and is as they
// want it. If there is none, at all ranks or at one, the caches differ for good: a thread freed and another one made windows in the meantime,
// or a rank had no room. Then the ranges that were offered go.
bool HostRange::TakeCommon(const std::vector<Card>& cards, RangeCache::Ranges offers, int rank) {
  const auto offered_by = [](const Card& card, uint64_t offset) {
    return std::find(std::begin(card.offers), std::end(card.offers), offset) != std::end(card.offers);
  };
  uint64_t common = kNone;
  for (const uint64_t offset : cards[0].offers) {
    if (offset == kNone || common != kNone) continue;
    if (std::all_of(cards.begin(), cards.end(), [&](const Card& card) { return offered_by(card, offset); })) common = offset;
  }
  for (size_t i = offers.size(); i-- > 0;) {
    RangeCache::Range& offer = offers[i];
    if (offer.offset == common) {
      range_ = std::move(offer);
    } else if (common == kNone) {
      GiveUp(key_.places, offer);
    } else {
      Keep(key_, std::move(offer));
    }
  }
  if (!range_.mapping) return false;
  // The others see it after the next collective.
  std::memset(of(rank), 0, bytes_of(rank));
  return true;
}

Error HostRange::MakeNew(Comm& comm, std::vector<size_t> starts) {
  host::Segment& segment = *host::ThisHost();
  const size_t total = starts.back();
  uint64_t offset = comm.rank == 0 ? segment.Reserve(total).value_or(kNone) : kNone;
  if (offset != kNone && host::ReserveMemory(segment.memory_descriptor(), offset, total) != 0) offset = kNone;
  WEFT_MPI_TRY(Broadcast(&offset, 1, *Datatype::Find(MPI_UINT64_T), 0, comm));
  if (offset == kNone) return {};
  host::Mapping mapping = segment.Map(offset, total);
  int mapped = mapping ? 1 : 0, all = 0;
  WEFT_MPI_TRY(AllReduce(&mapped, &all, 1, *Datatype::Find(MPI_INT), *Op::Find(MPI_MIN), comm));
  if (all == 0) return {};
  range_ = {.offset = offset, .starts = std::move(starts), .mapping = std::move(mapping), .processes = {}};
  return {};
}

void HostRange::MayBeReused(std::vector<std::shared_ptr<host::Process>> processes) {
  // All decide alike.
  may_be_reused_ = true;
  for (size_t rank = 0; rank + 1 < range_.starts.size(); ++rank) may_be_reused_ &= bytes_of(static_cast<int>(rank)) <= RangeCache::kMostOfPart;
  range_.processes = std::move(processes);
}

void HostRange::Keep(const RangeCache::Key& key, RangeCache::Range range) {
  for (const auto& [places, leaving] : Cache().Add(key, std::move(range))) GiveUp(places, leaving);
}

HostRange::~HostRange() {
  if (!range_.mapping) return;
  if (may_be_reused_) {
    Keep(key_, std::move(range_));
  } else {
    GiveUp(key_.places, range_);
  }
}

// Of two that are done last each may see that all are: what is given back twice was so the first time. Who died is done, too.
void HostRange::GiveUp(const std::vector<int>& places, const RangeCache::Range& range) {
  const host::Segment* const segment = host::ThisHost();
  if (segment == nullptr) return;
  Head& head = *reinterpret_cast<Head*>(range.mapping.data());
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (places[rank] == segment->place()) head.done[rank] = 1;
  }
  for (size_t rank = 0; rank < places.size(); ++rank) {
    if (head.done[rank] == 0 && segment->IsPresent(places[rank])) return;
  }
  segment->Discard(range.offset, range.mapping.size());
}

}  // namespace weft::mpi::rma
