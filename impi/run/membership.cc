#include "impi/run/membership.h"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace weft::impi {
namespace {

using transport::SocketAddress;

constexpr int32_t kTagUpperBound = 0x3fffffff;  // of Weft's MPI library

}  // namespace

void Say(const std::string& text) { std::fprintf(stderr, "impirun: %s\n", text.c_str()); }
void Warn(const std::string& text) { Say("warning: " + text); }

Result<SocketAddress, std::string> ServerAddress(const ClientOptions& options) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  for (const int family : {AF_INET, AF_UNSPEC}) {
    hints.ai_family = family;
    addrinfo* found = nullptr;
    const int error = getaddrinfo(options.host.c_str(), nullptr, &hints, &found);
    if (error != 0 && family == AF_INET) continue;
    if (error != 0) return "the server's host '" + options.host + "' is not known: " + gai_strerror(error);
    char text[NI_MAXHOST] = "";
    getnameinfo(found->ai_addr, found->ai_addrlen, text, sizeof text, nullptr, 0, NI_NUMERICHOST);
    freeaddrinfo(found);
    if (const auto address = SocketAddress::Parse(text, options.port)) return *address;
  }
  return "the server's host '" + options.host + "' has no address that can be used";
}

Result<Membership, std::string> BecomeMember(const ClientOptions& options, const SocketAddress& server, std::vector<HostAnnouncement> hosts, const Waiter& wait) {
  const Announcement mine{.data_length = options.data_length,
                          .tag_upper_bound = kTagUpperBound,
                          .crossover_size = options.crossover_size,
                          .max_linear = options.max_linear,
                          .hosts = std::move(hosts)};
  Dialogue::Setup setup;
  setup.rank = options.client;
  setup.none = options.authentication.Has(AuthMethod::kNone);
  if (options.authentication.Has(AuthMethod::kKey)) setup.key = options.authentication.key;
  setup.says = mine.ToLabels();
  auto link = ServerLink::Join(server.host(), options.port, std::move(setup), wait);
  if (!link.ok()) return link.error();
  const Dialogue& dialogue = (*link)->dialogue();
  auto job = Job::Of(dialogue.clients(), dialogue.told(), ClientRank(options.client), mine);
  if (!job.ok()) return job.error();
  if (job->high_water() < 2 * job->ack_mark()) {
    Warn("the hosts agreed on a hiwater of " + std::to_string(job->high_water()) + " and an ackmark of " + std::to_string(job->ack_mark()) +
         "; with less than twice the ackmark, processes can wait for each other for ever");
  }
  const uint32_t others = ~(uint32_t{1} << options.client) & static_cast<uint32_t>((uint64_t{1} << job->clients()) - 1);
  return Membership{std::move(link).value(), std::move(job).value(), options.lam_peers ? others : 0};
}

HostRank FirstHost(const Job& job) {
  const auto own = std::find_if(job.hosts().begin(), job.hosts().end(), [&](const Job::Host& host) { return host.client == job.self(); });
  return HostRank(static_cast<int32_t>(own - job.hosts().begin()));
}

}  // namespace weft::impi
