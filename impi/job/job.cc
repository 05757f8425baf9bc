#include "impi/job/job.h"

#include <algorithm>
#include <climits>
#include <numeric>
#include <set>

#include "base/byte_reader.h"
#include "base/check.h"

namespace weft::impi {
namespace {

using Told = std::map<Label, Collected>;

constexpr size_t kNumber = sizeof(uint32_t);

std::string Client(size_t rank) { return "client " + std::to_string(rank); }

HostId ReadHost(ByteReader& reader) {
  HostId host;
  const ByteSpan bytes = reader.Bytes(host.size());
  std::copy(bytes.begin(), bytes.end(), host.begin());
  return host;
}

}  // namespace

Result<ByteSpan, std::string> Job::Values(int clients, const Told& told, Label label, uint64_t count, size_t size) {
  const auto found = told.find(label);
  const uint32_t said = found == told.end() ? 0 : found->second.clients;
  for (int rank = 0; rank < clients; ++rank) {
    if ((said >> rank & 1) != 0) continue;
    return Client(static_cast<size_t>(rank)) + " did not say " + impi::NameOf(label) + ", which version 0.0 of IMPI wants from all clients";
  }
  const Bytes& values = found->second.values;
  if (size != 0 && values.size() != count * size) {
    return impi::NameOf(label) + " of all clients has " + std::to_string(values.size()) + " bytes and not " + std::to_string(count) + " times " +
           std::to_string(size);
  }
  return ByteSpan(values);
}

Result<Job, std::string> Job::Of(int clients, const Told& told, ClientRank self) {
  WEFT_CHECK(clients >= 1 && clients <= kMostClients && self.value >= 0 && self.value < clients);
  Job job;
  job.clients_ = clients;
  job.self_ = self;
  Error error = job.ReadVersions(told);
  if (!error) error = job.ReadClients(told);
  if (!error) error = job.ReadChoice(told, Label::kCrossoverSize, kDefaultCrossoverSize, job.crossover_size_);
  if (!error) error = job.ReadChoice(told, Label::kMaxLinear, kDefaultMaxLinear, job.max_linear_);
  if (!error) error = job.ReadHosts(told);
  if (!error) error = job.ReadProcesses(told);
  if (error) return *error;
  job.said_crossover_size_ = static_cast<int32_t>(ByteReader(told.at(Label::kCrossoverSize).values).U32());
  job.said_max_linear_ = static_cast<int32_t>(ByteReader(told.at(Label::kMaxLinear).values).U32());
  return job;
}

Result<Job, std::string> Job::Of(int clients, const Told& told, ClientRank self, const Announcement& mine) {
  auto job = Of(clients, told, self);
  if (!job.ok()) return job;
  if (const Error error = job->CheckMine(mine)) return *error;
  return job;
}

// Each client says its versions in ascending order, the first one is 0.0, and nothing else says where those of the next client begin.
Job::Error Job::ReadVersions(const Told& told) {
  constexpr size_t kVersion = 2 * kNumber;
  const auto values = Values(clients_, told, Label::kVersion, 0, 0);
  if (!values.ok()) return values.error();
  const std::string name = impi::NameOf(Label::kVersion);
  if (values->size() % kVersion != 0) return name + " of all clients has " + std::to_string(values->size()) + " bytes, which is not a multiple of 8";
  ByteReader reader(*values);
  std::map<std::pair<uint32_t, uint32_t>, int> having;
  std::optional<std::pair<uint32_t, uint32_t>> before;
  size_t client = 0;
  while (reader.remaining() != 0) {
    const uint32_t major = reader.U32();
    const std::pair version{major, reader.U32()};
    const std::string text = std::to_string(version.first) + "." + std::to_string(version.second);
    if (version == std::pair{0u, 0u}) {
      if (before) ++client;
    } else if (!before || version <= *before) {
      return Client(client) + " or the one behind it said version " + text + " in " + name + (before ? " out of order" : " without version 0.0") +
             "; each client begins with 0.0, and ascends";
    }
    before = version;
    ++having[version];
  }
  const int beginnings = having[{0, 0}];
  if (beginnings != clients_) return name + " has version 0.0 " + std::to_string(beginnings) + " times; each of the " + std::to_string(clients_) + " clients has to have it";
  // This client has 0.0 only (Announcement), so a higher one is never common to all.
  for (const auto& [version, count] : having) {
    if (count == clients_) version_ = version;
  }
  return std::nullopt;
}

Job::Error Job::ReadClients(const Told& told) {
  const auto count = static_cast<uint64_t>(clients_);
  const auto hosts = Values(clients_, told, Label::kHosts, count, kNumber);
  if (!hosts.ok()) return hosts.error();
  const auto processes = Values(clients_, told, Label::kProcesses, count, kNumber);
  if (!processes.ok()) return processes.error();
  const auto lengths = Values(clients_, told, Label::kDataLength, count, kNumber);
  if (!lengths.ok()) return lengths.error();
  const auto tags = Values(clients_, told, Label::kTagUpperBound, count, kNumber);
  if (!tags.ok()) return tags.error();
  ByteReader host_reader(*hosts), process_reader(*processes), length_reader(*lengths), tag_reader(*tags);
  limits_ = {.data_length = UINT32_MAX, .tag = INT32_MAX};
  for (size_t client = 0; client < count; ++client) {
    client_hosts_.push_back(host_reader.U32());
    client_processes_.push_back(process_reader.U32());
    const uint32_t length = length_reader.U32();
    const auto tag = static_cast<int32_t>(tag_reader.U32());
    if (client_hosts_.back() == 0) return Client(client) + " has 0 hosts (IMPI_C_NHOSTS); 1 is the least";
    if (client_processes_.back() == 0) return Client(client) + " has 0 processes (IMPI_C_NPROCS); 1 is the least";
    if (length == 0) return Client(client) + " takes packets with 0 bytes of data (IMPI_C_DATALEN); 1 is the least";
    if (tag < kLeastTagUpperBound) return Client(client) + " has tags up to " + std::to_string(tag) + " (IMPI_C_TAGUB); 32767 is the least";
    said_.emplace_back(length, tag);
    limits_.data_length = std::min(limits_.data_length, length);
    limits_.tag = std::min(limits_.tag, tag);
  }
  return std::nullopt;
}

// "All clients must contribute the same value, or an error occurs": so also where one says -1 and another the number that -1 stands for.
Job::Error Job::ReadChoice(const Told& told, Label label, int32_t otherwise, int32_t& chosen) const {
  const auto values = Values(clients_, told, label, static_cast<uint64_t>(clients_), kNumber);
  if (!values.ok()) return values.error();
  ByteReader reader(*values);
  const auto first = static_cast<int32_t>(reader.U32());
  if (first < Announcement::kDefault) return Client(0) + " said " + std::to_string(first) + " for " + impi::NameOf(label) + "; -1 is the least";
  for (size_t client = 1; reader.remaining() != 0; ++client) {
    const auto value = static_cast<int32_t>(reader.U32());
    if (value == first) continue;
    return Client(client) + " said " + std::to_string(value) + " for " + impi::NameOf(label) + " and client 0 said " + std::to_string(first) +
           "; set the same number at all clients, or at none";
  }
  chosen = first == Announcement::kDefault ? otherwise : first;
  return std::nullopt;
}

Job::Error Job::ReadHosts(const Told& told) {
  const uint64_t count = std::accumulate(client_hosts_.begin(), client_hosts_.end(), uint64_t{0});
  const auto addresses = Values(clients_, told, Label::kHostAddress, count, sizeof(HostId));
  if (!addresses.ok()) return addresses.error();
  const auto ports = Values(clients_, told, Label::kHostPort, count, kNumber);
  if (!ports.ok()) return ports.error();
  const auto processes = Values(clients_, told, Label::kHostProcesses, count, kNumber);
  if (!processes.ok()) return processes.error();
  const auto ack_marks = Values(clients_, told, Label::kHostAckMark, count, kNumber);
  if (!ack_marks.ok()) return ack_marks.error();
  const auto high_waters = Values(clients_, told, Label::kHostHighWater, count, kNumber);
  if (!high_waters.ok()) return high_waters.error();
  const uint64_t all_processes = std::accumulate(client_processes_.begin(), client_processes_.end(), uint64_t{0});
  if (all_processes > INT32_MAX) return "the clients have " + std::to_string(all_processes) + " processes (IMPI_C_NPROCS); ranks have 31 bits";
  ByteReader address_reader(*addresses), port_reader(*ports), process_reader(*processes), ack_reader(*ack_marks), high_reader(*high_waters);
  std::map<std::pair<HostId, uint16_t>, HostRank> listening;
  ack_mark_ = high_water_ = UINT32_MAX;
  int32_t first = 0;
  for (size_t client = 0; client < client_hosts_.size(); ++client) {
    uint64_t of_client = 0;
    for (uint32_t i = 0; i < client_hosts_[client]; ++i) {
      Host host{.client = ClientRank(static_cast<int32_t>(client)), .address = ReadHost(address_reader), .first = WorldRank(first)};
      const HostRank rank(static_cast<int32_t>(hosts_.size()));
      const std::string name = "host " + std::to_string(rank.value) + " of " + Client(client) + " (" + TextOf(host.address) + ")";
      const uint32_t port = port_reader.U32(), on_host = process_reader.U32();
      host.ack_mark = ack_reader.U32();
      host.high_water = high_reader.U32();
      if (Canonical(host.address) == HostId{}) return name + " has no address (IMPI_H_IPV6)";
      if (port == 0 || port > UINT16_MAX) return name + " has the port " + std::to_string(port) + " (IMPI_H_PORT); 1 to 65535 are ports";
      if (host.ack_mark == 0 || host.ack_mark > host.high_water) {
        return name + " has an ackmark of " + std::to_string(host.ack_mark) + " (IMPI_H_ACKMARK) and a hiwater of " + std::to_string(host.high_water) +
               " (IMPI_H_HIWATER); 1 <= ackmark <= hiwater is wanted";
      }
      of_client += on_host;
      if (of_client > client_processes_[client]) break;  // and is said below
      host.port = static_cast<uint16_t>(port);
      host.processes = static_cast<int32_t>(on_host);
      const auto [other, alone] = listening.try_emplace({Canonical(host.address), host.port}, rank);
      if (!alone) return name + " listens at port " + std::to_string(port) + ", as " + NameOf(other->second) + " does";
      first += host.processes;
      ack_mark_ = std::min(ack_mark_, host.ack_mark);
      high_water_ = std::min(high_water_, host.high_water);
      hosts_.push_back(host);
    }
    if (of_client == client_processes_[client]) continue;
    return Client(client) + " has " + std::to_string(client_processes_[client]) + " processes (IMPI_C_NPROCS), and its hosts have " +
           (of_client > client_processes_[client] ? "more" : std::to_string(of_client)) + " (IMPI_H_NPROCS)";
  }
  return std::nullopt;
}

Job::Error Job::ReadProcesses(const Told& told) {
  const uint64_t count = std::accumulate(client_processes_.begin(), client_processes_.end(), uint64_t{0});
  const auto addresses = Values(clients_, told, Label::kProcessAddress, count, sizeof(HostId));
  if (!addresses.ok()) return addresses.error();
  const auto numbers = Values(clients_, told, Label::kProcessNumber, count, sizeof(int64_t));
  if (!numbers.ok()) return numbers.error();
  ByteReader address_reader(*addresses), number_reader(*numbers);
  processes_.reserve(count);
  by_name_.reserve(count);
  for (size_t host = 0; host < hosts_.size(); ++host) {
    for (int32_t i = 0; i < hosts_[host].processes; ++i) {
      const ProcessName name{ReadHost(address_reader), static_cast<int64_t>(number_reader.U64())};
      by_name_.emplace_back(ProcessName{Canonical(name.host), name.number}, WorldRank(static_cast<int32_t>(processes_.size())));
      processes_.push_back({HostRank(static_cast<int32_t>(host)), name});
    }
  }
  std::sort(by_name_.begin(), by_name_.end());
  const auto twice = std::adjacent_find(by_name_.begin(), by_name_.end(), [](const auto& a, const auto& b) { return a.first == b.first; });
  if (twice == by_name_.end()) return std::nullopt;
  return NameOf(twice->second) + " and " + NameOf(std::next(twice)->second) + " have one name (IMPI_P_IPV6 and IMPI_P_PID)";
}

Job::Error Job::CheckMine(const Announcement& mine) const {
  const auto& [length, tag] = said_[static_cast<size_t>(self_.value)];
  Announcement back{.data_length = length, .tag_upper_bound = tag, .crossover_size = said_crossover_size_, .max_linear = said_max_linear_, .hosts = {}};
  for (const Host& host : hosts_) {
    if (host.client != self_) continue;
    HostAnnouncement& one = back.hosts.emplace_back(HostAnnouncement{host.address, host.port, host.ack_mark, host.high_water, {}});
    for (int32_t i = 0; i < host.processes; ++i) one.processes.push_back(process(WorldRank(host.first.value + i)).name);
  }
  if (back == mine) return std::nullopt;
  return "the server gave back other values for client " + std::to_string(self_.value) + " than this client had sent";
}

std::vector<WorldRank> Job::ProcessesOf(ClientRank client) const {
  std::vector<WorldRank> processes;
  for (const Host& host : hosts_) {
    if (host.client != client) continue;
    for (int32_t i = 0; i < host.processes; ++i) processes.emplace_back(host.first.value + i);
  }
  return processes;
}

std::optional<WorldRank> Job::Find(const ProcessName& name) const {
  const ProcessName canonical{Canonical(name.host), name.number};
  const auto found = std::lower_bound(by_name_.begin(), by_name_.end(), canonical, [](const auto& entry, const ProcessName& one) { return entry.first < one; });
  if (found == by_name_.end() || found->first != canonical) return std::nullopt;
  return found->second;
}

std::string Job::NameOf(HostRank rank) const {
  const Host& one = host(rank);
  return "host " + std::to_string(rank.value) + " of client " + std::to_string(one.client.value) + " (" + TextOf(one.address) + ")";
}

std::string Job::NameOf(WorldRank rank) const {
  const Process& one = process(rank);
  return "rank " + std::to_string(rank.value) + " (" + TextOf(one.name) + ") of client " + std::to_string(host(one.host).client.value);
}

}  // namespace weft::impi
