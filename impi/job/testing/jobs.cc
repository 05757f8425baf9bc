#include "impi/job/testing/jobs.h"

#include <utility>

#include "base/check.h"

namespace weft::impi::testing {

std::vector<Announcement> Announcements(const std::vector<std::vector<int>>& clients) {
  std::vector<Announcement> all;
  uint32_t host = 0;
  int64_t rank = 0;
  for (const std::vector<int>& hosts : clients) {
    Announcement& client = all.emplace_back(Announcement{.data_length = 100, .tag_upper_bound = 32767, .hosts = {}});
    for (const int processes : hosts) {
      HostId address{};
      address[12] = 192;
      address[14] = 2;
      address[15] = static_cast<uint8_t>(host + 1);
      HostAnnouncement& one = client.hosts.emplace_back(HostAnnouncement{address, 5000 + host, 2, 4, {}});
      for (int i = 0; i < processes; ++i) one.processes.push_back({address, 100 + rank++});
      ++host;
    }
  }
  return all;
}

std::map<Label, Collected> Tell(const std::vector<Announcement>& clients) {
  std::map<Label, Collected> told;
  for (size_t rank = 0; rank < clients.size(); ++rank) {
    for (const Collected& said : clients[rank].ToLabels()) {
      Collected& all = told.try_emplace(said.label, Collected{said.label, 0, {}}).first->second;
      all.clients |= uint32_t{1} << rank;
      all.values.insert(all.values.end(), said.values.begin(), said.values.end());
    }
  }
  return told;
}

Job JobOf(const std::vector<Announcement>& clients, int self) {
  auto job = Job::Of(static_cast<int>(clients.size()), Tell(clients), ClientRank(self), clients[static_cast<size_t>(self)]);
  WEFT_CHECK(job.ok());
  return std::move(job).value();
}

}  // namespace weft::impi::testing
