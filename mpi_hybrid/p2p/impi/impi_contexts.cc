#include "mpi_hybrid/p2p/impi/impi_contexts.h"

#include "base/check.h"

namespace weft::mpi {

std::optional<ContextId> ImpiContextTable::For(uint64_t on_wire) {
  constexpr uint64_t kEnd = (uint64_t{1} << 31) - kFirst - 1;  // with the next one, for collectives
  if (on_wire >= kEnd) return std::nullopt;
  return kFirst + static_cast<ContextId>(on_wire);
}

void ImpiContextTable::Add(ContextId context, uint64_t on_wire, const Ref<Group>& remote) {
  for (ContextId of = 0; of < 2; ++of) {
    const bool is_new = here_.emplace(context + of, Entry{on_wire + of, remote}).second && by_wire_.emplace(on_wire + of, context + of).second;
    WEFT_CHECK(is_new);
  }
}

void ImpiContextTable::Remove(ContextId context) {
  for (ContextId of = 0; of < 2; ++of) {
    const auto found = here_.find(context + of);
    WEFT_CHECK(found != here_.end());
    by_wire_.erase(found->second.on_wire);
    here_.erase(found);
  }
}

std::optional<uint64_t> ImpiContextTable::OnWire(uint32_t context) const {
  const auto found = here_.find(context);
  return found == here_.end() ? std::nullopt : std::optional(found->second.on_wire);
}

std::optional<uint32_t> ImpiContextTable::Here(uint64_t context) const {
  const auto found = by_wire_.find(context);
  return found == by_wire_.end() ? std::nullopt : std::optional(found->second);
}

bool ImpiContextTable::HasRank(uint32_t context, int32_t rank, ProcessId process) const {
  const auto found = here_.find(context);
  if (found == here_.end()) return false;
  const std::vector<ProcessId>& members = found->second.remote->members;
  return rank >= 0 && static_cast<size_t>(rank) < members.size() && members[static_cast<size_t>(rank)] == process;
}

}  // namespace weft::mpi
