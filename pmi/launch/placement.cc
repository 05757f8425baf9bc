#include "pmi/launch/placement.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "base/host_port.h"
#include "pmi/wire/message.h"
#include "pmi/process_mapping.h"

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
                    "' for its number of ranks; it must be from 1 to " + std::to_string(kMostSlots)};
  }
  host.slots = *slots;
  return host;
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

}  // namespace weft::pmi
