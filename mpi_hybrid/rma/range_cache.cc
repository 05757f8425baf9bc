#include "mpi_hybrid/rma/range_cache.h"

#include <algorithm>
#include <utility>

namespace weft::mpi::rma {

RangeCache::Ranges RangeCache::TakeOffers(const Key& key) {
  Ranges offers;
  const auto found = by_key_.find(key);
  if (found == by_key_.end()) return offers;
  std::vector<Aged>& ranges = found->second;
  while (!ranges.empty() && offers.size() < kMostOffered) {
    offers.push_back(std::move(ranges.back().range));
    ranges.pop_back();
    --ranges_;
    parts_ -= key.own_bytes;
  }
  if (ranges.empty()) by_key_.erase(found);
  return offers;
}

std::vector<std::pair<std::vector<int>, RangeCache::Range>> RangeCache::Add(const Key& key, Range range) {
  std::vector<std::pair<std::vector<int>, Range>> leaving;
  if (key.own_bytes > kMostOfPart) {
    leaving.emplace_back(key.places, std::move(range));
    return leaving;
  }
  while (!HasRoom(key.own_bytes)) {
    const auto oldest = std::min_element(by_key_.begin(), by_key_.end(),
                                         [](const auto& a, const auto& b) { return a.second.front().age < b.second.front().age; });
    leaving.emplace_back(oldest->first.places, std::move(oldest->second.front().range));
    --ranges_;
    parts_ -= oldest->first.own_bytes;
    oldest->second.erase(oldest->second.begin());
    if (oldest->second.empty()) by_key_.erase(oldest);
  }
  by_key_[key].push_back({next_age_++, std::move(range)});
  ++ranges_;
  parts_ += key.own_bytes;
  return leaving;
}

void RangeCache::Clear() {
  by_key_.clear();
  ranges_ = parts_ = 0;
}

}  // namespace weft::mpi::rma
