#ifndef IMPI_JOB_JOB_H_
#define IMPI_JOB_JOB_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "impi/job/announcement.h"
#include "impi/job/ranks.h"
#include "impi/wire/command.h"
#include "impi/wire/packet.h"

namespace weft::impi {

// What the clients of a job agreed on when it started: computed from what the server told, the same at each of them. Does not change.
//
// Addresses and names stand in it as they were announced. An agent sends them in this form: LAM compares 16 bytes, and does not know that ::ffff:192.0.2.7
// and 192.0.2.7 are one host. Comparisons here take the canonical form, and so does Packet::Parse: whatever form a peer uses in its packets, it is found.
class Job {
 public:
  struct Host {
    ClientRank client;
    HostId address{};  // as announced
    uint16_t port = 0;
    uint32_t ack_mark = 0, high_water = 0;  // as announced; ack_mark() and high_water() of the job count
    WorldRank first;                        // its processes are this one and those behind it
    int32_t processes = 0;                  // may be 0
  };
  struct Process {
    HostRank host;
    ProcessName name;  // as announced
  };

  static constexpr int kMostClients = 32;                 // bits of a mask
  static constexpr int32_t kLeastTagUpperBound = 32767;   // section 3.9
  static constexpr int32_t kDefaultCrossoverSize = 1024;  // bytes; section 2.3.5
  static constexpr int32_t kDefaultMaxLinear = 4;         // hosts

  // `told`: by label, the values of all clients in ascending order. Why not: a sentence that names the client, the label, its value and the limit.
  static Result<Job, std::string> Of(int clients, const std::map<Label, Collected>& told, ClientRank self);
  // The same at the client that spoke with the server. `mine`: what it said, which has to have come back.
  static Result<Job, std::string> Of(int clients, const std::map<Label, Collected>& told, ClientRank self, const Announcement& mine);

  int clients() const { return clients_; }
  ClientRank self() const { return self_; }
  const std::vector<Host>& hosts() const { return hosts_; }             // by HostRank
  const std::vector<Process>& processes() const { return processes_; }  // by WorldRank
  const Host& host(HostRank rank) const { return hosts_[static_cast<size_t>(rank.value)]; }
  const Process& process(WorldRank rank) const { return processes_[static_cast<size_t>(rank.value)]; }
  // In ascending order; they stand together.
  std::vector<WorldRank> ProcessesOf(ClientRank client) const;
  // In either form of an IPv4 address.
  std::optional<WorldRank> Find(const ProcessName& name) const;

  // Of packets: the least DATALEN and the least TAGUB of all clients.
  const PacketLimits& limits() const { return limits_; }
  // The least ACKMARK and the least HIWATER of all hosts, as with LAM. The specification speaks of one value that the hosts negotiate (section 3.6), and does
  // not say how. The least ones keep 1 <= ACKMARK <= HIWATER.
  uint32_t ack_mark() const { return ack_mark_; }
  uint32_t high_water() const { return high_water_; }
  int32_t crossover_size() const { return crossover_size_; }  // bytes
  int32_t max_linear() const { return max_linear_; }          // hosts
  // Of the protocol: the highest one that all clients have.
  std::pair<uint32_t, uint32_t> version() const { return version_; }

  // "host 3 of client 1 (192.0.2.7)"; hosts have the numbers of the job.
  std::string NameOf(HostRank rank) const;
  // "rank 5 (192.0.2.7/4711) of client 1"
  std::string NameOf(WorldRank rank) const;

 private:
  using Error = std::optional<std::string>;
  Job() = default;
  // The values of one label, if all clients said it and they have `count` times `size` bytes.
  static Result<ByteSpan, std::string> Values(int clients, const std::map<Label, Collected>& told, Label label, uint64_t count, size_t size);
  Error ReadClients(const std::map<Label, Collected>& told);
  Error ReadVersions(const std::map<Label, Collected>& told);
  Error ReadHosts(const std::map<Label, Collected>& told);
  Error ReadProcesses(const std::map<Label, Collected>& told);
  Error ReadChoice(const std::map<Label, Collected>& told, Label label, int32_t otherwise, int32_t& chosen) const;
  Error CheckMine(const Announcement& mine) const;

  int clients_ = 0;
  ClientRank self_;
  std::vector<uint32_t> client_hosts_, client_processes_;  // how many, by client
  std::vector<Host> hosts_;
  std::vector<Process> processes_;
  std::vector<std::pair<ProcessName, WorldRank>> by_name_;  // canonical, ascending
  PacketLimits limits_;
  uint32_t ack_mark_ = 0, high_water_ = 0;
  int32_t crossover_size_ = 0, max_linear_ = 0;
  int32_t said_crossover_size_ = 0, said_max_linear_ = 0;
  std::vector<std::pair<uint32_t, int32_t>> said_;  // DATALEN and TAGUB, by client
  std::pair<uint32_t, uint32_t> version_{0, 0};
};

}  // namespace weft::impi

#endif  // IMPI_JOB_JOB_H_
