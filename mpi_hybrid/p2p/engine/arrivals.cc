#include "mpi_hybrid/p2p/engine/arrivals.h"

namespace weft::mpi {

Arrivals::Kind Arrivals::Note(uint32_t context, uint32_t number, Early* early) {
  const size_t at = GroupOf(context);
  Group& group = groups_[at];
  const uint32_t ahead = number - static_cast<uint32_t>(group.next);
  if (ahead == 0) {
    ++group.next;
    return Kind::kNext;
  }
  if (ahead > kMostAhead || early_ >= kMostEarly) return Kind::kWrong;
  *early = {at, group.next + ahead};
  if (!group.early.emplace(early->number, nullptr).second) return Kind::kWrong;
  ++early_;
  return Kind::kEarly;
}

std::optional<Message*> Arrivals::TakeNext(size_t at) {
  Group& group = groups_[at];
  const auto first = group.early.begin();
  if (first == group.early.end() || first->first != group.next) return std::nullopt;
  Message* message = first->second;
  group.early.erase(first);
  ++group.next;
  --early_;
  return message;
}

std::optional<Message*> Arrivals::TakeAny() {
  if (early_ == 0) return std::nullopt;
  for (Group& group : groups_) {
    const auto first = group.early.begin();
    if (first == group.early.end()) continue;
    Message* message = first->second;
    group.next = first->first + 1;
    group.early.erase(first);
    --early_;
    return message;
  }
  return std::nullopt;
}

}  // namespace weft::mpi
