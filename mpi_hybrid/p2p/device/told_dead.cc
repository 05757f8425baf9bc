#include "mpi_hybrid/p2p/device/told_dead.h"

#include <algorithm>

namespace weft::mpi {

bool ToldDead::Advance(Clock::time_point now, bool moved) {
  std::vector<ProcessId> over;
  std::erase_if(dead_, [&](const Dead& dead) {
    const Link* link = engine_.FindLink(dead.process);
    if (link == nullptr || link->is_gone()) return true;
    if (now - dead.since < (moved ? kLongest : kGrace)) return false;
    over.push_back(dead.process);
    return true;
  });
  for (const ProcessId process : over) {
    const Link& link = *engine_.FindLink(process);
    transport_of_(link).Drop(link);
    engine_.OnGone(process, /*left=*/false);
  }
  return !over.empty();
}

std::optional<ToldDead::Clock::time_point> ToldDead::deadline() const {
  if (dead_.empty()) return std::nullopt;
  return dead_.front().since + kGrace;
}

}  // namespace weft::mpi
