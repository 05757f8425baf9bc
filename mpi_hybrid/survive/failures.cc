#include "mpi_hybrid/survive/failures.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mpi_hybrid/p2p/message.h"

namespace weft::mpi::survive {

void Acknowledge(Comm& comm) {
  std::vector<ProcessId> known = comm.acknowledged;
  known.insert(known.end(), comm.found_dead.begin(), comm.found_dead.end());
  const auto add = [&](const Group& group) {
    for (const ProcessId process : GoneOf(group)) known.push_back(process);
  };
  add(*comm.local);
  if (comm.inter) add(*comm.remote);
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  comm.acknowledged = std::move(known);
}

Ref<Group> Acknowledged(const Comm& comm) {
  std::vector<ProcessId> members;
  const auto add = [&](const Group& group) {
    for (const ProcessId process : group.members) {
      if (std::binary_search(comm.acknowledged.begin(), comm.acknowledged.end(), process)) members.push_back(process);
    }
  };
  add(*comm.local);
  if (comm.inter) add(*comm.remote);
  return MakeGroup(std::move(members));
}

}  // namespace weft::mpi::survive
