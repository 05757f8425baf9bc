#include "impi/tester/exchange.h"

#include <algorithm>
#include <utility>

namespace weft::impi::tester {
namespace {

Rendezvous::Setup ServerSetup(const Script& script) {
  Rendezvous::Setup setup{.clients = script.clients, .methods = {}, .key = kKey};
  if (script.has_key) setup.methods.push_back(AuthMethod::kKey);
  if (script.has_none) setup.methods.push_back(AuthMethod::kNone);
  return setup;
}

// Labels ascend; one of a script takes the place of one of the announcement.
std::vector<Collected> Says(const Script& script, int client, const std::vector<PlayedHost>& hosts) {
  std::map<Label, Collected> says;
  for (Collected& collected : AnnouncementOf(script, client, hosts).ToLabels()) says[collected.label] = collected;
  for (const Collected& collected : script.played[static_cast<size_t>(client)].also) says[collected.label] = collected;
  std::vector<Collected> ascending;
  for (auto& [label, collected] : says) ascending.push_back(std::move(collected));
  return ascending;
}

}  // namespace

Announcement AnnouncementOf(const Script& script, int client, const std::vector<PlayedHost>& hosts) {
  constexpr int64_t kMostRanks = 1 << 15;  // of a host: the numbers differ from those of all programs with another port
  const PlayedClient& played = script.played[static_cast<size_t>(client)];
  Announcement announcement{.data_length = played.data_length,
                            .tag_upper_bound = played.tag_upper_bound,
                            .crossover_size = played.crossover_size,
                            .max_linear = played.max_linear,
                            .hosts = {}};
  size_t number = static_cast<size_t>(script.FirstHostOf(client));
  for (const int ranks : played.hosts) {
    const PlayedHost& at = hosts[number++];
    HostAnnouncement host{at.address, at.port, played.ack_mark, played.high_water, {}};
    for (int rank = 0; rank < ranks; ++rank) host.processes.push_back({at.address, at.port * kMostRanks + rank});
    announcement.hosts.push_back(std::move(host));
  }
  return announcement;
}

Exchange::Exchange(const Script& script, const std::vector<PlayedHost>& hosts, Time now)
    : script_(script), rendezvous_(ServerSetup(script), *this) {
  rendezvous_.OnConnected(kUnderTest, "the client under test", now);
  for (int client = 0; client < script.clients; ++client) {
    if (client == script.under_test) continue;
    Dialogue::Setup setup;
    setup.server = "the tester";
    setup.rank = client;
    setup.none = script.has_none;
    if (script.has_key) setup.key = kKey;
    setup.says = Says(script, client, hosts);
    const auto connection = static_cast<Rendezvous::Connection>(client) + 1;
    played_.try_emplace(connection, std::move(setup), now);
    rendezvous_.OnConnected(connection, "the tester", now);
  }
  Carry(now);
}

void Exchange::OnBytes(ByteSpan bytes, Time now) {
  rendezvous_.OnBytes(kUnderTest, bytes, now);
  Carry(now);
}

// Until none of them has anything to say.
void Exchange::Carry(Time now) {
  for (bool more = true; std::exchange(more, false);) {
    for (auto& [connection, dialogue] : played_) {
      const Bytes answer = std::exchange(to_played_[connection], {});
      if (!answer.empty()) dialogue.OnBytes(answer, now);
      const Bytes said = dialogue.TakeOutput();
      if (!said.empty()) rendezvous_.OnBytes(connection, said, now);
      more |= !answer.empty() || !said.empty();
    }
  }
}

Bytes Exchange::TakeOutput() { return std::exchange(output_, {}); }

bool Exchange::is_over() const {
  return rendezvous_.state() == Rendezvous::State::kRunning &&
         std::all_of(played_.begin(), played_.end(),
                     [](const auto& one) { return one.second.state() == Dialogue::State::kRunning; });
}

std::string Exchange::failure() const {
  if (rendezvous_.state() == Rendezvous::State::kFailed) return rendezvous_.reason();
  if (closed_) return warnings_;
  for (const auto& [connection, dialogue] : played_) {
    if (dialogue.state() == Dialogue::State::kFailed) return dialogue.reason();
  }
  return {};
}

Result<Job, std::string> Exchange::TheJob() const {
  const auto& [connection, dialogue] = *played_.begin();
  auto job = Job::Of(dialogue.clients(), dialogue.told(), ClientRank(static_cast<int32_t>(connection) - 1));
  if (!job.ok()) return job.error();
  const size_t ranks = job->ProcessesOf(ClientRank(script_.under_test)).size();
  const auto expected = static_cast<size_t>(script_.RanksOf(script_.under_test));
  if (ranks != expected) {
    return "client " + std::to_string(script_.under_test) + " announces " + std::to_string(ranks) +
           " processes; the script needs " + std::to_string(expected) + ": start it with {ranks} ranks";
  }
  const auto hosts = std::count_if(job->hosts().begin(), job->hosts().end(), [&](const Job::Host& host) {
    return host.client == ClientRank(script_.under_test);
  });
  if (hosts != 1) {
    return "client " + std::to_string(script_.under_test) + " announces " + std::to_string(hosts) +
           " hosts; the scripts are for one: start all its ranks on one host";
  }
  return job;
}

void Exchange::Send(Rendezvous::Connection connection, const Bytes& bytes) {
  Bytes& to = connection == kUnderTest ? output_ : to_played_[connection];
  to.insert(to.end(), bytes.begin(), bytes.end());
}

void Exchange::Close(Rendezvous::Connection connection) { closed_ |= connection == kUnderTest; }

}  // namespace weft::impi::tester
