// Hosts and processes at an agent. Each step is four bytes: what is done, by whom, to whom, and a number; raw bytes may stand between packets. Then accounts
// are within their budgets, what leaves is whole packets for who gets them, and a failure has a reason.
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <variant>

#include "base/check.h"
#include "impi/agent/agent.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

enum Step : uint8_t { kPacket, kRaw, kWrite, kClose, kTime, kFini, kSteps };

constexpr size_t kBudget = 1000;

const Job& TheJob() {
  static const Job job = testing::JobOf(testing::Announcements({{2}, {1, 1}, {2}}), 0);
  return job;
}

// The agent's connections: its processes, and the hosts of the other clients.
Agent::Port PortOf(uint8_t number) {
  const int which = number % 5;
  return which < 2 ? Agent::Port(WorldRank(which)) : Agent::Port(HostRank(which - 1));
}

}  // namespace
}  // namespace weft::impi

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace weft::impi;
  using State = Agent::State;
  const Job& job = TheJob();
  Agent::Time now{};
  Agent agent(job, {.host = HostRank(0), .host_budget = kBudget, .process_budget = kBudget}, now);
  std::map<Agent::Port, Inlet> readers;  // at the other ends
  const auto feed = [&](Agent::Port port, weft::ByteSpan bytes) {
    if (!agent.MayRead(port)) return;
    agent.OnBytes(port, bytes, now);
    WEFT_CHECK(agent.account(port) <= kBudget + bytes.size() + Packet::kSize + job.limits().data_length);
  };
  const auto write = [&](Agent::Port port, size_t most) {
    std::array<weft::ByteSpan, 3> into;
    const size_t count = agent.Gather(port, into);
    Inlet& reader = readers.try_emplace(port, job.limits()).first->second;
    size_t wrote = 0;
    for (size_t i = 0; i < count && wrote < most; ++i) {
      weft::ByteSpan part = into[i].first(std::min(most - wrote, into[i].size()));
      wrote += part.size();
      for (;;) {
        auto taken = reader.Take(part);
        WEFT_CHECK(taken.ok());
        if (!*taken) break;
        const Packet& packet = (*taken)->packet;
        if (packet.type == PacketType::kFini) {
          WEFT_CHECK(std::holds_alternative<HostRank>(port));
          continue;
        }
        const auto source = job.Find(packet.source), destination = job.Find(packet.destination);
        WEFT_CHECK(source && destination);
        const bool to_host = std::holds_alternative<HostRank>(port);
        WEFT_CHECK(to_host ? job.process(*destination).host == std::get<HostRank>(port) : *destination == std::get<WorldRank>(port));
        WEFT_CHECK((job.process(*source).host == HostRank(0)) == to_host);
      }
    }
    agent.Wrote(port, wrote, now);
  };
  for (size_t at = 0; at + 3 < size && agent.state() == State::kRunning; at += 4) {
    const Agent::Port port = PortOf(data[at + 1]);
    const uint8_t who = data[at + 1], whom = data[at + 2], number = data[at + 3];
    switch (static_cast<Step>(data[at] % kSteps)) {
      case kPacket: {
        const uint32_t length = number % 102;
        const auto processes = static_cast<uint8_t>(job.processes().size());
        CarriedPacket packet({.type = static_cast<PacketType>(data[at] / kSteps % 8),
                              .data_length = length,
                              .source = job.process(WorldRank(who / 5 % processes)).name,
                              .destination = job.process(WorldRank(whom % processes)).name,
                              .message_length = length});
        if (!packet.packet.has_data()) packet = CarriedPacket({.type = packet.packet.type, .source = packet.packet.source, .destination = packet.packet.destination});
        packet.WriteHeader();
        std::fill(packet.data().begin(), packet.data().end(), number);
        feed(port, {packet.bytes.get(), packet.size()});
        break;
      }
      case kRaw:
        feed(port, {data + at + 2, 2});
        break;
      case kWrite:
        write(port, size_t{number} * 4);
        break;
      case kClose:
        agent.OnClosed(port);
        break;
      case kTime:
        now += std::chrono::seconds(number);
        agent.OnTime(now);
        WEFT_CHECK(!agent.deadline() || *agent.deadline() > now);
        break;
      case kFini:
      default: {
        CarriedPacket fini({.type = PacketType::kFini});
        fini.WriteHeader();
        feed(port, {fini.bytes.get(), fini.size()});
      }
    }
    agent.TakeReady();
    agent.TakeReadable();
    WEFT_CHECK((agent.state() == State::kFailed) == !agent.reason().empty());
  }
  return 0;
}
