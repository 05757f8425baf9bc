#include "pmi/placement.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "pmi/message.h"

namespace weft::pmi {
namespace {

constexpr int kMostSlots = 65536;

// Ranks on one host in a row.
struct Run {
  int host;
  int ranks;
};

std::vector<Run> RunsOf(const std::vector<int>& host_of_rank, size_t length) {
  std::vector<Run> runs;
  for (size_t rank = 0; rank < length; ++rank) {
    if (runs.empty() || runs.back().host != host_of_rank[rank]) runs.push_back({host_of_rank[rank], 0});
    ++runs.back().ranks;
  }
  return runs;
}

std::string MappingOf(const std::vector<Run>& runs) {
  std::string text = "(vector";
  for (size_t i = 0; i < runs.size();) {
    size_t end = i + 1;
    while (end < runs.size() && runs[end].host == runs[end - 1].host + 1 && runs[end].ranks == runs[i].ranks) ++end;
    text += ",(" + std::to_string(runs[i].host) + "," + std::to_string(end - i) + "," + std::to_string(runs[i].ranks) + ")";
    i = end;
  }
  return text + ")";
}

bool HasPlainName(const std::string& host) {
  return !host.empty() && host[0] != '-' && std::all_of(host.begin(), host.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr(".-_:%@", c);
  });
}

Result<HostSlots, PmiError> ParseEntry(const std::string& entry) {
  HostSlots host;
  std::string number;
  if (entry.starts_with('[')) {
    const size_t end = entry.find(']');
    if (end == std::string::npos) return PmiError{"the host '" + entry + "' has no closing bracket"};
    host.name = entry.substr(1, end - 1);
    if (end + 1 < entry.size() && entry[end + 1] != ':') {
      return PmiError{"the host '" + entry + "' is not [ADDRESS] or [ADDRESS]:NUMBER"};
    }
    if (end + 1 < entry.size()) number = entry.substr(end + 1);
  } else {
    const size_t colon = entry.find(':');
    // More than one colon: an IPv6 address without a number.
    const bool address = colon != std::string::npos && entry.find(':', colon + 1) != std::string::npos;
    host.name = address ? entry : entry.substr(0, colon);
    if (!address && colon != std::string::npos) number = entry.substr(colon);
  }
  if (!HasPlainName(host.name)) return PmiError{"'" + Printable(entry) + "' is not a host name"};
  if (number.empty()) return host;
  const std::optional<int> slots = ParseInt(number.substr(1));
  if (!slots || *slots < 1 || *slots > kMostSlots) {
    return PmiError{"the host '" + Printable(entry) + "' has '" + Printable(number.substr(1)) +
                    "' for its number of ranks; 1 to " + std::to_string(kMostSlots) + " can be"};
  }
  host.slots = *slots;
  return host;
}

bool SameAddress(const sockaddr* a, const sockaddr* b) {
  if (a->sa_family != b->sa_family) return false;
  if (a->sa_family == AF_INET) {
    return reinterpret_cast<const sockaddr_in*>(a)->sin_addr.s_addr == reinterpret_cast<const sockaddr_in*>(b)->sin_addr.s_addr;
  }
  return a->sa_family == AF_INET6 && std::memcmp(&reinterpret_cast<const sockaddr_in6*>(a)->sin6_addr,
                                                 &reinterpret_cast<const sockaddr_in6*>(b)->sin6_addr, sizeof(in6_addr)) == 0;
}

bool BelongsToAnInterface(const sockaddr* address) {
  ifaddrs* interfaces = nullptr;
  if (getifaddrs(&interfaces) != 0) return false;
  bool found = false;
  for (const ifaddrs* entry = interfaces; entry != nullptr && !found; entry = entry->ifa_next) {
    found = entry->ifa_addr != nullptr && SameAddress(entry->ifa_addr, address);
  }
  freeifaddrs(interfaces);
  return found;
}

}  // namespace

Placement Place(const std::vector<HostSlots>& entries, int size) {
  Placement placement;
  std::vector<int> host_of_entry;
  for (const HostSlots& entry : entries) {
    const auto known = std::find(placement.hosts.begin(), placement.hosts.end(), entry.name);
    host_of_entry.push_back(static_cast<int>(known - placement.hosts.begin()));
    if (known == placement.hosts.end()) placement.hosts.push_back(entry.name);
  }
  const size_t wanted = static_cast<size_t>(size);
  size_t cycle = 0;  // ranks of one round through the entries
  while (placement.host_of_rank.size() < wanted) {
    for (size_t i = 0; i < entries.size(); ++i) {
      placement.host_of_rank.insert(placement.host_of_rank.end(), static_cast<size_t>(entries[i].slots), host_of_entry[i]);
    }
    if (cycle == 0) cycle = placement.host_of_rank.size();
  }
  placement.host_of_rank.resize(wanted);
  // MPICH repeats the vector until every rank has a host, so one round says it all.
  placement.mapping = MappingOf(RunsOf(placement.host_of_rank, std::min(cycle, wanted)));
  if (placement.mapping.size() >= kValueMax) placement.mapping.clear();
  // Hosts that got no rank are not started.
  const int used = 1 + *std::max_element(placement.host_of_rank.begin(), placement.host_of_rank.end());
  placement.hosts.resize(static_cast<size_t>(used));
  return placement;
}

Result<std::vector<HostSlots>, PmiError> ParseHosts(const std::string& list) {
  std::vector<HostSlots> hosts;
  for (size_t at = 0; at <= list.size();) {
    const size_t comma = std::min(list.find(',', at), list.size());
    auto host = ParseEntry(list.substr(at, comma - at));
    if (!host) return host.error();
    hosts.push_back(*host);
    at = comma + 1;
  }
  return hosts;
}

Result<std::vector<HostSlots>, PmiError> ParseHostFile(const std::string& text, const std::string& name) {
  std::vector<HostSlots> hosts;
  int line_number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t line_end = std::min(text.find('\n', at), text.size());
    std::string line = text.substr(at, line_end - at);
    at = line_end + 1;
    ++line_number;
    line.erase(0, std::min(line.find_first_not_of(" \t\r"), line.size()));
    line = line.substr(0, line.find_first_of(" \t\r#"));
    if (line.empty()) continue;
    auto host = ParseEntry(line);
    if (!host) return PmiError{name + ", line " + std::to_string(line_number) + ": " + host.error().message};
    hosts.push_back(*host);
  }
  if (hosts.empty()) return PmiError{"the host file " + name + " names no host"};
  return hosts;
}

bool IsThisHost(const std::string& host) {
  if (host == "localhost") return true;
  char own[256] = {};
  if (gethostname(own, sizeof(own) - 1) == 0 && host == own) return true;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return false;
  bool local = false;
  for (const addrinfo* entry = found; entry != nullptr && !local; entry = entry->ai_next) {
    local = BelongsToAnInterface(entry->ai_addr);
  }
  freeaddrinfo(found);
  return local;
}

}  // namespace weft::pmi
