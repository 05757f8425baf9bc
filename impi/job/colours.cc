#include "impi/job/colours.h"

#include <algorithm>
#include <vector>

#include "base/check.h"

namespace weft::impi {
namespace {

struct Place {
  int size = 0, color = 0;
};

// Where `one` stands among the numbers that occur; it occurs.
Place PlaceOf(const std::vector<bool>& occurs, int32_t one) {
  WEFT_CHECK(occurs[static_cast<size_t>(one)]);
  return {.size = static_cast<int>(std::count(occurs.begin(), occurs.end(), true)),
          .color = static_cast<int>(std::count(occurs.begin(), occurs.begin() + one, true))};
}

}  // namespace

Colours ColoursOf(const Job& job, std::span<const WorldRank> group, WorldRank process) {
  std::vector<bool> clients(static_cast<size_t>(job.clients())), hosts(job.hosts().size());
  for (const WorldRank rank : group) {
    const HostRank host = job.process(rank).host;
    hosts[static_cast<size_t>(host.value)] = true;
    clients[static_cast<size_t>(job.host(host).client.value)] = true;
  }
  const HostRank host = job.process(process).host;
  const Place client = PlaceOf(clients, job.host(host).client.value), place = PlaceOf(hosts, host.value);
  return {client.size, client.color, place.size, place.color};
}

}  // namespace weft::impi
