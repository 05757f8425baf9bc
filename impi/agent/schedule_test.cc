// Agents and processes of three clients, with connections that hold little, in a random order of steps: nothing stops for ever, nothing is lost or overtaken,
// and no account grows beyond its budget. Each failure names its seed; RANDOM_RUN_SEED=N runs that one, RANDOM_RUN_COUNT=N a
// two-hundredth of so many.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <memory>
#include <random>

#include "impi/agent/agent.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

using State = Agent::State;

// One direction of a connection.
struct Pipe {
  size_t capacity = 0;  // bytes
  std::deque<uint8_t> bytes;

  size_t room() const { return capacity - bytes.size(); }
  std::vector<uint8_t> Read(size_t most) {
    const auto count = static_cast<long>(std::min(most, bytes.size()));
    std::vector<uint8_t> taken(bytes.begin(), bytes.begin() + count);
    bytes.erase(bytes.begin(), bytes.begin() + count);
    return taken;
  }
};

class Simulation {
 public:
  explicit Simulation(uint64_t seed) : random_(seed) {
    clients_ = testing::Announcements({{2, 1}, {2}, {1, 2}});
    for (Announcement& client : clients_) {
      client.data_length = 1 + Below(200);
      for (HostAnnouncement& host : client.hosts) {
        host.ack_mark = 1 + Below(4);
        host.high_water = host.ack_mark + Below(5);
      }
    }
    job_ = std::make_unique<Job>(testing::JobOf(clients_, 0));
    const size_t hosts = job_->hosts().size();
    budget_ = 1 + Below(600);
    for (size_t host = 0; host < hosts; ++host) {
      const HostRank rank(static_cast<int32_t>(host));
      agents_.push_back(std::make_unique<Agent>(*job_, Agent::Setup{.host = rank, .host_budget = budget_, .process_budget = budget_}, Agent::Time()));
      for (size_t other = 0; other < hosts; ++other) between_[{host, other}].capacity = 1 + Below(300);
    }
    const size_t processes = job_->processes().size();
    for (size_t rank = 0; rank < processes; ++rank) {
      Process& process = processes_.emplace_back(job_->limits());
      process.to_agent.capacity = 1 + Below(300);
      process.from_agent.capacity = 1 + Below(300);
      process.patient = Below(4) != 0;
      for (size_t other = 0; other < processes; ++other) {
        if (ClientOf(other) == ClientOf(rank)) continue;
        process.left[other] = Below(20);
      }
    }
    for (size_t rank = 0; rank < processes; ++rank) {
      for (const auto& [other, count] : processes_[rank].left) processes_[other].expected += count;
    }
  }

  // Why it did not end; empty: it did.
  std::string Run() {
    for (int idle = 0; idle < 20000;) {
      idle = Step() ? 0 : idle + 1;
      for (size_t host = 0; host < agents_.size(); ++host) {
        if (agents_[host]->state() == State::kFailed) return "agent " + std::to_string(host) + ": " + agents_[host]->reason();
      }
      if (!fault_.empty()) return fault_;
      if (std::all_of(agents_.begin(), agents_.end(), [](const auto& agent) { return agent->state() == State::kEnded; })) return Check();
    }
    return "nothing goes on";
  }

 private:
  struct Process {
    explicit Process(const PacketLimits& limits) : inlet(limits) {}
    Pipe to_agent, from_agent;
    Inlet inlet;
    bool patient = true;  // waits for all that is sent to it; others leave when they have sent all, and the agent discards the rest
    bool away = false;    // computes, and does not look at its agent
    bool finished = false;
    std::map<size_t, uint32_t> left;                      // data packets to send, by process
    std::map<size_t, uint32_t> unacknowledged, received;  // that it sent and that it took
    std::map<size_t, uint64_t> last;                      // the number of the last packet that came, by process
    uint32_t expected = 0, came = 0;
    uint64_t number = 0;
    std::deque<uint8_t> unsent;
  };

  uint32_t Below(uint32_t limit) { return std::uniform_int_distribution<uint32_t>(0, limit - 1)(random_); }
  size_t HostOf(size_t rank) const { return static_cast<size_t>(job_->processes()[rank].host.value); }
  int ClientOf(size_t rank) const { return job_->hosts()[HostOf(rank)].client.value; }
  bool Partners(size_t host, size_t other) const { return job_->hosts()[host].client != job_->hosts()[other].client; }

  // A random step of a random process or agent. False: there was nothing to do.
  bool Step() {
    const size_t rank = Below(static_cast<uint32_t>(processes_.size())), host = Below(static_cast<uint32_t>(agents_.size()));
    const size_t other = Below(static_cast<uint32_t>(agents_.size()));
    Process& process = processes_[rank];
    Agent& agent = *agents_[HostOf(rank)];
    const WorldRank port(static_cast<int32_t>(rank));
    switch (Below(7)) {
      case 0:
        // Each one comes back: MPI asks a program to do so, not more.
        if (Below(20) == 0) process.away = !process.away;
        return false;
      case 1:
        return !process.away && !process.finished && Take(process, rank);
      case 2:
        return !process.away && Produce(process, rank);
      case 3:
        if (!agent.MayRead(port)) return false;
        return Feed(agent, port, process.to_agent.Read(1 + Below(200)));
      case 4:
        // A process that has ended takes nothing; its connection is closed.
        if (process.finished) process.from_agent.bytes.clear();
        return Write(agent, port, process.from_agent);
      case 5: {
        const HostRank peer(static_cast<int32_t>(other));
        return Partners(host, other) && Write(*agents_[host], peer, between_[{host, other}]);
      }
      default: {
        const HostRank peer(static_cast<int32_t>(other));
        if (!Partners(host, other) || !agents_[host]->MayRead(peer)) return false;
        return Feed(*agents_[host], peer, between_[{other, host}].Read(1 + Below(200)));
      }
    }
  }

  bool Feed(Agent& agent, Agent::Port port, const std::vector<uint8_t>& bytes) {
    if (bytes.empty()) return false;
    agent.OnBytes(port, bytes, {});
    // What was below its budget grows by what was read and by the packet that it completes.
    if (agent.account(port) > budget_ + bytes.size() + Packet::kSize + job_->limits().data_length) fault_ = "an account is above its budget";
    return true;
  }

  bool Write(Agent& agent, Agent::Port port, Pipe& pipe) {
    std::array<ByteSpan, 4> into;
    const size_t count = agent.Gather(port, std::span(into).first(1 + Below(4)));
    size_t left = std::min<size_t>(pipe.room(), 1 + Below(300)), wrote = 0;
    for (size_t i = 0; i < count && left != 0; ++i) {
      const ByteSpan part = into[i].first(std::min(left, into[i].size()));
      pipe.bytes.insert(pipe.bytes.end(), part.begin(), part.end());
      left -= part.size();
      wrote += part.size();
    }
    agent.Wrote(port, wrote, {});
    return wrote != 0;
  }

  void Say(Process& process, Packet packet) {
    CarriedPacket carried(packet);
    carried.WriteHeader();
    std::fill(carried.data().begin(), carried.data().end(), static_cast<uint8_t>(packet.sequence));
    process.unsent.insert(process.unsent.end(), carried.bytes.get(), carried.bytes.get() + carried.size());
  }

  // The process sends what it may, and ends when it has done all that it had to.
  bool Produce(Process& process, size_t rank) {
    const size_t count = std::min(process.to_agent.room(), process.unsent.size());
    if (count != 0) {
      process.to_agent.bytes.insert(process.to_agent.bytes.end(), process.unsent.begin(), process.unsent.begin() + static_cast<long>(count));
      process.unsent.erase(process.unsent.begin(), process.unsent.begin() + static_cast<long>(count));
      return true;
    }
    if (process.finished || !process.unsent.empty()) return false;
    bool all = true;
    for (auto& [other, left] : process.left) {
      if (left == 0) continue;
      all = false;
      if (process.unacknowledged[other] >= job_->high_water()) continue;
      const auto length = static_cast<uint32_t>(Below(job_->limits().data_length + 1));
      --left;
      ++process.unacknowledged[other];
      Say(process, {.type = Below(4) == 0 ? PacketType::kDataSync : PacketType::kData,
                    .data_length = length,
                    .source = job_->processes()[rank].name,
                    .destination = job_->processes()[other].name,
                    .message_length = length,
                    .sequence = ++process.number});
      return true;
    }
    if (!all || (process.patient && process.came < process.expected)) return false;
    process.finished = true;
    Say(process, {.type = PacketType::kFini});
    return true;
  }

  bool Take(Process& process, size_t rank) {
    const std::vector<uint8_t> read = process.from_agent.Read(1 + Below(200));
    ByteSpan bytes(read);
    for (;;) {
      auto taken = process.inlet.Take(bytes);
      if (!taken.ok()) fault_ = taken.error();
      if (!taken.ok() || !*taken) return !read.empty();
      const Packet& packet = (*taken)->packet;
      const auto source = static_cast<size_t>(job_->Find(packet.source)->value);
      if (job_->Find(packet.destination) != WorldRank(static_cast<int32_t>(rank))) fault_ = "a packet is where it does not belong";
      if (packet.type == PacketType::kProtocolAck) {
        if (process.unacknowledged[source] < job_->ack_mark()) fault_ = "more is acknowledged than was sent";
        process.unacknowledged[source] -= job_->ack_mark();
        continue;
      }
      if (packet.sequence <= process.last[source]) fault_ = "a packet overtook another one";
      process.last[source] = packet.sequence;
      for (const uint8_t byte : (*taken)->data()) {
        if (byte != static_cast<uint8_t>(packet.sequence)) fault_ = "data are wrong";
      }
      ++process.came;
      if (++process.received[source] % job_->ack_mark() == 0) {
        Say(process, {.type = PacketType::kProtocolAck, .source = job_->processes()[rank].name, .destination = packet.source});
      }
    }
  }

  std::string Check() {
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      const Process& process = processes_[rank];
      if (process.patient && process.came != process.expected) {
        return "process " + std::to_string(rank) + " had " + std::to_string(process.came) + " of " + std::to_string(process.expected) + " packets";
      }
    }
    return "";
  }

  std::mt19937_64 random_;
  std::vector<Announcement> clients_;
  std::unique_ptr<Job> job_;
  size_t budget_ = 0;
  std::vector<std::unique_ptr<Agent>> agents_;
  std::map<std::pair<size_t, size_t>, Pipe> between_;  // from, to
  std::deque<Process> processes_;
  std::string fault_;
};

TEST(ImpiAgentSchedule, NothingStopsForEverWhateverIsFull) {
  const char* const one = std::getenv("RANDOM_RUN_SEED");
  const char* const asked = std::getenv("RANDOM_RUN_COUNT");
  const uint64_t first = one != nullptr ? std::strtoull(one, nullptr, 0) : 1;
  const uint64_t count = one != nullptr ? 1 : asked != nullptr ? std::max<uint64_t>(1, std::strtoull(asked, nullptr, 0) / 200) : 50;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string why = Simulation(seed).Run();
    ASSERT_EQ(why, "") << "RANDOM_RUN_SEED=" << seed;
  }
}

}  // namespace
}  // namespace weft::impi
