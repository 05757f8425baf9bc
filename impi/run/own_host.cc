#include "impi/run/own_host.h"

#include <arpa/inet.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/descriptor.h"
#include "base/file_limit.h"
#include "pmi/launch/sockets.h"

namespace weft::impi {
namespace {

constexpr size_t kAllProcesses = 256 << 20;  // bytes of packets in the agent that came from processes
constexpr size_t kAllHosts = 512 << 20;      // bytes of packets in the agent that came from hosts
constexpr rlim_t kOtherFiles = 32;           // descriptors beside the connections

bool IsLoopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }

}  // namespace

Result<HostId, std::string> OwnHostId(const std::string& address, const std::string& interface, const transport::SocketAddress& server,
                                      const std::string& otherwise) {
  std::string text = address;
  if (text.empty() && !interface.empty()) {
    const auto addresses = pmi::AddressesFor({}, interface);
    if (addresses.empty()) return "-iface " + interface + ": no such interface, or it has no address";
    text = addresses.front();
  }
  if (text.empty()) {
    // Connecting a datagram socket sends nothing, and chooses the address.
    const Descriptor fd(socket(server.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!fd || connect(fd.get(), server.get(), server.length()) != 0) return "there is no way to the server at " + server.host() + ": " + std::strerror(errno);
    text = pmi::OwnAddress(fd.get());
    if (IsLoopback(text) && !otherwise.empty()) text = otherwise;
  }
  HostId host{};
  in_addr ipv4;
  if (inet_pton(AF_INET, text.c_str(), &ipv4) == 1) return HostIdOfIpv4(ipv4.s_addr);
  if (inet_pton(AF_INET6, text.c_str(), host.data()) == 1) return host;
  return "'" + text + "' is not an address of IPv4 or IPv6; -address names one";
}

std::vector<ProcessName> NamesOf(const HostId& host, int port, int count) {
  std::vector<ProcessName> names;
  for (int i = 0; i < count; ++i) names.push_back({host, int64_t{port} * kMostRanks + i});
  return names;
}

Agent::Setup AgentFor(const Job& job, HostRank host, uint32_t lam_clients) {
  const auto share = [](size_t all, size_t among, size_t least, size_t most) { return std::clamp(all / std::max<size_t>(among, 1), least, most); };
  Agent::Setup setup{.host = host, .lam_clients = lam_clients};
  setup.process_budget = share(kAllProcesses, static_cast<size_t>(job.host(host).processes), 256 << 10, 4 << 20);
  setup.host_budget = share(kAllHosts, job.hosts().size(), 4 << 20, 64 << 20);
  return setup;
}

std::string CheckFiles(int ranks, int hosts) {
  RaiseFileLimit();
  rlimit limit{};
  const rlim_t needed = static_cast<rlim_t>(ranks) + static_cast<rlim_t>(hosts) + kOtherFiles;
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return {};
  return std::to_string(ranks) + " ranks need " + std::to_string(needed) + " open files in their agent, and the limit is " + std::to_string(limit.rlim_cur) +
         "; raise it (ulimit -n), or start fewer ranks";
}

}  // namespace weft::impi
