#include "mpi_hybrid/p2p/device/partings.h"

#include <algorithm>

namespace weft::mpi {

void Partings::Begin(ProcessId process, Clock::duration patience) {
  partings_.push_back({.process = process, .give_up_at = Clock::now() + patience});
}

bool Partings::IsUnderWay(ProcessId process) const {
  return std::any_of(partings_.begin(), partings_.end(),
                     [&](const Parting& parting) { return parting.process == process; });
}

bool Partings::Advance(Clock::time_point now) {
  bool moved = false;
  for (size_t i = 0; i < partings_.size();) {
    if (!Step(partings_[i], now, &moved)) {
      ++i;
      continue;
    }
    moved = true;
    const ProcessId process = partings_[i].process;
    if (Link* link = engine_.FindLink(process)) transport_of_(*link).Drop(*link);
    engine_.Forget(process);
    forget_(process);
    partings_.erase(partings_.begin() + static_cast<std::ptrdiff_t>(i));
  }
  return moved;
}

bool Partings::Step(Parting& parting, Clock::time_point now, bool* moved) {
  Link* link = engine_.FindLink(parting.process);
  if (link == nullptr) return true;
  Transport& transport = transport_of_(*link);
  if (!transport.IsConnected(*link) || link->state() == Link::State::kFresh || now >= parting.give_up_at) return true;
  if (parting.stage == Stage::kTalks && !link->has_output()) {
    if (!link->is_gone()) link->SendControl({.kind = FrameKind::kGoodbye});
    parting.stage = Stage::kSaid;
    *moved = true;
    if (link->has_output()) transport.Flush(*link);
  }
  if (parting.stage == Stage::kSaid && !link->has_output()) {
    transport.EndOutput(*link);
    parting.stage = Stage::kEnded;
    *moved = true;
  }
  return !transport.IsConnected(*link);
}

std::optional<Partings::Clock::time_point> Partings::deadline() const {
  std::optional<Clock::time_point> first;
  for (const Parting& parting : partings_) {
    if (!first || parting.give_up_at < *first) first = parting.give_up_at;
  }
  return first;
}

}  // namespace weft::mpi
