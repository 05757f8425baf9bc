#include "mpi_hybrid/survive/revocation.h"

#include <algorithm>
#include <utility>

namespace weft::mpi::survive {

std::vector<int> WhomToTell(int self, int size, const std::function<bool(int)>& is_gone) {
  std::vector<int> places;
  for (int64_t step = 1; step < size; step *= 2) {
    for (int64_t further = step; further < size; ++further) {
      const int place = static_cast<int>((self + further) % size);
      if (is_gone(place)) continue;
      places.push_back(place);
      break;
    }
  }
  std::sort(places.begin(), places.end());
  places.erase(std::unique(places.begin(), places.end()), places.end());
  return places;
}

void Revocations::Add(uint64_t identity, int self, std::vector<int> processes) {
  known_.push_back({.identity = identity, .self = self, .processes = std::move(processes), .told = {}});
  if (known_.size() > kMost) known_.pop_front();
}

bool Revocations::Has(uint64_t identity) const {
  return std::any_of(known_.begin(), known_.end(), [&](const Known& known) { return known.identity == identity; });
}

void Revocations::Spread(const IsGone& is_gone, const Tell& tell) {
  for (Known& known : known_) {
    const auto process_at = [&](int place) { return known.processes[static_cast<size_t>(place)]; };
    for (const int place :
         WhomToTell(known.self, static_cast<int>(known.processes.size()), [&](int at) { return is_gone(process_at(at)); })) {
      if (known.told.insert(place).second) tell(known.identity, process_at(place));
    }
  }
}

}  // namespace weft::mpi::survive
