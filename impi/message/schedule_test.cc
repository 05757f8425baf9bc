// Processes of several clients that send and receive at random, in virtual time: frames of a pair arrive in order and after a random while. All messages
// come, whole and in order, whatever the schedule is; no direction stands still for good; and no more is stored than was agreed.
//
// RANDOM_RUN_SEED=N runs only that seed, RANDOM_RUN_COUNT=N so many.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "impi/message/testing/process.h"

namespace weft::impi {
namespace {

constexpr uint64_t kContext = 4;

// How the program of a process receives.
enum class Order : uint8_t {
  kAtAnyTime,    // receives are posted at random times, each for a source and a tag
  kFromAny,      // the same, for any source and any tag
  kOneByOne,     // the next one is posted when the one before is complete; each for a source and any tag
  kBackToFront,  // the same, for a source and a tag that may come much later: what comes before has to be stored
};

struct Plan {
  struct Message {
    int to = 0;
    int32_t tag = 0;
    size_t length = 0;
    bool synchronous = false;
  };
  PacketLimits packets;
  FlowLimits flow;
  Order order = Order::kAtAnyTime;
  bool cancels = false;
  bool sends_first = false;              // all receives are posted when both directions are full
  std::vector<std::vector<Message>> messages;  // by sender
};

class Network {
 public:
  Network(uint64_t seed, int processes);
  void Run();

 private:
  using Time = uint64_t;
  struct Channel {
    Time last = 0;  // when the last frame arrives
  };
  struct Program {
    std::vector<Wanted> wanted;                // receives that are not posted yet, the next one last
    std::optional<ReceiveId> last;             // that was posted
    std::vector<std::pair<SendId, size_t>> sent;  // and their place in the plan
  };

  uint64_t Random(uint64_t below) { return random_() % below; }
  void At(Time time, std::function<void()> what) { events_.emplace(time, std::move(what)); }
  PeerId PeerOf(int from, int to) const { return PeerId(static_cast<uint32_t>(to - (to > from))); }
  int ProcessOf(int of, PeerId peer) const { return static_cast<int>(peer.value) + (static_cast<int>(peer.value) >= of); }
  Bytes ContentOf(int from, size_t index, size_t length) const;

  void Invent();
  void PlanReceives(int process);
  void SendOne(int from, size_t index);
  void PostNext(int process);
  void AfterEvent(int process);
  void Pull(int from, int to);
  void ExpectBounds(int process) const;
  void ExpectAllDone();
  void ExpectOrder(int process) const;
  void End();

  std::mt19937_64 random_;
  Plan plan_;
  std::deque<TestProcess> processes_;
  std::vector<Program> programs_;
  std::map<std::pair<int, int>, Channel> channels_;
  std::multimap<Time, std::function<void()>> events_;
  Time now_ = 0;
};

Network::Network(uint64_t seed, int processes) : random_(seed) {
  plan_.messages.resize(static_cast<size_t>(processes));
  programs_.resize(static_cast<size_t>(processes));
  Invent();
  const auto name = [](int process) { return ProcessName{{}, 100 + process}; };
  for (int process = 0; process < processes; ++process) {
    TestProcess& made = processes_.emplace_back(name(process), plan_.packets);
    for (int peer = 0; peer < processes; ++peer) {
      if (peer != process) made.endpoint.AddPeer(name(peer), Random(4) == 0 ? Peer::kLam : Peer::kStandard, plan_.flow);
    }
  }
}

void Network::Invent() {
  plan_.packets = {.data_length = static_cast<uint32_t>(1 + Random(Random(2) == 0 ? 8 : 600)), .tag = 100};
  plan_.flow.ack_mark = static_cast<uint32_t>(1 + Random(3));
  plan_.flow.high_water = static_cast<uint32_t>(plan_.flow.ack_mark + Random(6 - plan_.flow.ack_mark));
  plan_.order = static_cast<Order>(Random(4));
  plan_.sends_first = Random(2) == 0;
  plan_.cancels = (plan_.order == Order::kAtAnyTime || plan_.order == Order::kFromAny) && Random(2) == 0;
  const int processes = static_cast<int>(plan_.messages.size());
  const size_t most = 1 + Random(30);
  for (int from = 0; from < processes; ++from) {
    for (size_t i = Random(most + 1); i != 0; --i) {
      const int to = (from + 1 + static_cast<int>(Random(static_cast<uint64_t>(processes) - 1))) % processes;
      const size_t length = Random(2) == 0 ? Random(plan_.packets.data_length + 1) : Random(5 * plan_.packets.data_length);
      plan_.messages[static_cast<size_t>(from)].push_back({.to = to, .tag = static_cast<int32_t>(Random(3)), .length = length, .synchronous = Random(3) == 0});
    }
  }
  const bool needs_store = plan_.order == Order::kBackToFront || (plan_.order == Order::kOneByOne && plan_.flow.high_water < 2 * plan_.flow.ack_mark);
  if (!needs_store) return;
  for (const auto& messages : plan_.messages) {
    for (const auto& message : messages) plan_.flow.store += std::min<uint64_t>(message.length + FlowIn::kHeldCost, plan_.packets.data_length);
  }
}

Bytes Network::ContentOf(int from, size_t index, size_t length) const {
  Bytes bytes(length);
  for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<uint8_t>(static_cast<size_t>(from) * 31 + index * 7 + i * 13 + i / 256);
  return bytes;
}

void Network::PlanReceives(int process) {
  Program& program = programs_[static_cast<size_t>(process)];
  for (size_t from = 0; from < plan_.messages.size(); ++from) {
    for (const Plan::Message& message : plan_.messages[from]) {
      if (message.to != process) continue;
      Wanted wanted{.context = kContext};
      if (plan_.order != Order::kFromAny) wanted.source = PeerOf(process, static_cast<int>(from));
      if (plan_.order == Order::kAtAnyTime || plan_.order == Order::kBackToFront) wanted.tag = message.tag;
      program.wanted.push_back(wanted);
    }
  }
  std::shuffle(program.wanted.begin(), program.wanted.end(), random_);
  if (plan_.order == Order::kOneByOne || plan_.order == Order::kBackToFront) return At(Random(100), [this, process] { PostNext(process); });
  const Time from = plan_.sends_first ? 10000 : 0;
  for (size_t i = 0; i < program.wanted.size(); ++i) At(from + Random(500), [this, process] { PostNext(process); });
}

void Network::PostNext(int process) {
  Program& program = programs_[static_cast<size_t>(process)];
  if (program.wanted.empty()) return;
  const Wanted wanted = program.wanted.back();
  program.wanted.pop_back();
  const size_t room = Random(5) == 0 ? Random(3 * plan_.packets.data_length) : size_t{1} << 20;
  TestProcess& self = processes_[static_cast<size_t>(process)];
  const auto message = Random(4) == 0 ? self.MatchedProbe(wanted) : std::nullopt;
  program.last = message ? self.Receive(*message, room) : self.Post(wanted, room);
  AfterEvent(process);
}

void Network::SendOne(int from, size_t index) {
  const Plan::Message& message = plan_.messages[static_cast<size_t>(from)][index];
  TestProcess& self = processes_[static_cast<size_t>(from)];
  const Envelope envelope{.context = kContext, .rank = from, .tag = message.tag, .count = index};
  const SendId id = self.Send(PeerOf(from, message.to), envelope, ContentOf(from, index, message.length), message.synchronous);
  programs_[static_cast<size_t>(from)].sent.emplace_back(id, index);
  if (plan_.cancels && Random(3) == 0) {
    At(now_ + Random(200), [this, from, id] {
      processes_[static_cast<size_t>(from)].Cancel(id);
      AfterEvent(from);
    });
  }
  AfterEvent(from);
}

void Network::AfterEvent(int process) {
  ExpectBounds(process);
  for (int to = 0; to < static_cast<int>(processes_.size()); ++to) {
    if (to == process || !processes_[static_cast<size_t>(process)].endpoint.HasOutput(PeerOf(process, to))) continue;
    At(now_ + Random(20), [this, process, to] { Pull(process, to); });
  }
  Program& program = programs_[static_cast<size_t>(process)];
  const bool one_by_one = plan_.order == Order::kOneByOne || plan_.order == Order::kBackToFront;
  if (!one_by_one || !program.last || !processes_[static_cast<size_t>(process)].receives.at(*program.last).complete) return;
  program.last.reset();
  At(now_ + Random(20), [this, process] { PostNext(process); });
}

void Network::Pull(int from, int to) {
  const Bytes frame = processes_[static_cast<size_t>(from)].Take(PeerOf(from, to));
  if (frame.empty()) return;
  Channel& channel = channels_[{from, to}];
  channel.last = std::max(channel.last, now_ + Random(30));
  At(channel.last, [this, to, frame] {
    ASSERT_EQ(processes_[static_cast<size_t>(to)].On(frame), "");
    AfterEvent(to);
  });
  AfterEvent(from);
}

void Network::ExpectBounds(int process) const {
  const TestProcess& self = processes_[static_cast<size_t>(process)];
  const uint64_t most = uint64_t{plan_.flow.high_water} * plan_.packets.data_length + plan_.flow.store;
  for (size_t i = 0; i + 1 < processes_.size(); ++i) {
    const PeerId peer(static_cast<uint32_t>(i));
    ASSERT_LE(self.endpoint.flow_out(peer).sent(), plan_.flow.high_water);
    ASSERT_LE(self.endpoint.flow_in(peer).unacknowledged(), plan_.flow.high_water);
    ASSERT_LE(self.endpoint.flow_in(peer).held(), most);
    ASSERT_LE(self.HeldBytes(peer), most);
  }
}

void Network::Run() {
  const int processes = static_cast<int>(processes_.size());
  for (int process = 0; process < processes; ++process) {
    PlanReceives(process);
    // In the order of the program.
    Time when = 0;
    for (size_t index = 0; index < plan_.messages[static_cast<size_t>(process)].size(); ++index) {
      when += plan_.sends_first ? 0 : Random(30);
      At(when, [this, process, index] { SendOne(process, index); });
    }
  }
  while (!events_.empty() && !testing::Test::HasFailure()) {
    const auto next = events_.begin();
    now_ = next->first;
    const std::function<void()> what = std::move(next->second);
    events_.erase(next);
    what();
  }
  if (testing::Test::HasFailure()) return;
  ExpectAllDone();
  for (int process = 0; process < processes; ++process) ExpectOrder(process);
  End();
}

void Network::ExpectAllDone() {
  std::vector<size_t> cancelled(processes_.size());
  for (size_t from = 0; from < processes_.size(); ++from) {
    for (const auto& [id, index] : programs_[from].sent) {
      const TestProcess::Sending& send = processes_[from].sends.at(id);
      EXPECT_TRUE(send.complete()) << "process " << from << " cannot send message " << index << " to " << plan_.messages[from][index].to;
      cancelled[static_cast<size_t>(plan_.messages[from][index].to)] += send.cancelled;
    }
  }
  for (size_t process = 0; process < processes_.size(); ++process) {
    EXPECT_TRUE(programs_[process].wanted.empty());
    size_t left = 0;
    for (const auto& [id, receive] : processes_[process].receives) {
      left += !receive.complete;
      if (!receive.complete) {
        EXPECT_FALSE(receive.matched);
        EXPECT_TRUE(processes_[process].matching.CancelReceive(id));
        continue;
      }
      const int from = ProcessOf(static_cast<int>(process), receive.source);
      Bytes content = ContentOf(from, receive.envelope.count, receive.envelope.length);
      EXPECT_EQ(receive.truncated, content.size() > receive.room);
      content.resize(std::min(content.size(), receive.room));
      EXPECT_EQ(receive.bytes, content);
    }
    EXPECT_EQ(left, cancelled[process]) << "process " << process;
  }
}

// Two messages that one receive could take match in the order in which they were sent.
void Network::ExpectOrder(int process) const {
  const TestProcess& self = processes_[static_cast<size_t>(process)];
  const bool any_tag = plan_.order == Order::kFromAny || plan_.order == Order::kOneByOne;
  std::map<std::pair<uint32_t, int32_t>, int64_t> last;
  for (const ReceiveId id : self.matches) {
    const TestProcess::Receiving& receive = self.receives.at(id);
    const auto [place, first] = last.try_emplace({receive.source.value, any_tag ? 0 : receive.envelope.tag}, -1);
    EXPECT_GT(static_cast<int64_t>(receive.envelope.count), place->second);
    place->second = static_cast<int64_t>(receive.envelope.count);
  }
}

void Network::End() {
  for (size_t process = 0; process < processes_.size(); ++process) {
    TestProcess& self = processes_[process];
    for (const auto& [id, index] : programs_[process].sent) self.endpoint.Release(id);
    EXPECT_EQ(self.endpoint.sends(), 0u);
    EXPECT_EQ(self.endpoint.messages(), 0u);
    EXPECT_EQ(self.matching.held() + self.matching.posted(), 0u);
    self.Finish();
    for (size_t i = 0; i + 1 < processes_.size(); ++i) {
      const PeerId peer(static_cast<uint32_t>(i));
      EXPECT_TRUE(self.endpoint.IsQuiet(peer));
      EXPECT_EQ(self.endpoint.flow_in(peer).held(), 0u);
      EXPECT_LT(self.endpoint.flow_out(peer).sent(), plan_.flow.ack_mark) << "what was acknowledged is forgotten";
      self.endpoint.OnFiniSent(peer);
    }
  }
}

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

TEST(ImpiSchedule, AllMessagesComeWholeAndInOrder) {
  const bool one = std::getenv("RANDOM_RUN_SEED") != nullptr;
  const uint64_t first = FromEnvironment("RANDOM_RUN_SEED", 1), count = one ? 1 : FromEnvironment("RANDOM_RUN_COUNT", 6000);
  for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("replay with RANDOM_RUN_SEED=" + std::to_string(seed));
    Network(seed, 2 + static_cast<int>(seed % 3)).Run();
  }
}

}  // namespace
}  // namespace weft::impi
