#include "pmi/launch/placement.h"

#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/host_port.h"
#include "pmi/wire/message.h"
#include "pmi/process_mapping.h"
#include "transport/interfaces.h"

namespace weft::pmi {
namespace {

constexpr int kMostSlots = 65536;

bool HasPlainName(const std::string& host) {
  return !host.empty() && host[0] != '-' && std::all_of(host.begin(), host.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || std::strchr(".-_:%@", c);
  });
}

Result<HostSlots, PmiError> ParseEntry(const std::string& entry) {
  const auto parts = SplitHost(entry);
  if (!parts) {
    return PmiError{
        "the host '" + entry + "' " +
        (entry.find(']') == entry.npos ? "has no closing bracket" : "is not [ADDRESS] or [ADDRESS]:NUMBER")};
  }
  HostSlots host{.name = std::string(parts->host)};
  if (!HasPlainName(host.name)) return PmiError{"'" + Printable(entry) + "' is not a host name"};
  if (!parts->number) return host;
  const std::string number(*parts->number);
  const std::optional<int> slots = ParseInt(number);
  if (!slots || *slots < 1 || *slots > kMostSlots) {
    return PmiError{"the host '" + Printable(entry) + "' has '" + Printable(number) +
                    "' for its number of ranks; 1 to " + std::to_string(kMostSlots) + " can be"};
  }
  host.slots = *slots;
  return host;
}

bool BelongsToAnInterface(const transport::SocketAddress& address) {
  const auto own = transport::ListAddresses();
  return std::any_of(own.begin(), own.end(),
                     [&](const transport::InterfaceAddress& one) { return one.address.SameHost(address); });
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
      placement.host_of_rank.insert(placement.host_of_rank.end(), static_cast<size_t>(entries[i].slots),
                                    host_of_entry[i]);
    }
    if (cycle == 0) cycle = placement.host_of_rank.size();
  }
  placement.host_of_rank.resize(wanted);
  // MPICH repeats the vector until every rank has a host, so one round says it all.
  placement.mapping = ProcessMapping::Of(std::span(placement.host_of_rank).first(std::min(cycle, wanted))).ToString();
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
    const auto address = transport::SocketAddress::From(entry->ai_addr, entry->ai_addrlen);
    local = address && BelongsToAnInterface(*address);
  }
  freeaddrinfo(found);
  return local;
}

}  // namespace weft::pmi
