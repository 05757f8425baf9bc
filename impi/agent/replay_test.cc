// Weft's agent in the place of one of two LAM/MPI hosts: each packet of their captured job goes through it, and has to come out as it was: to a process in all
// that the specification says, to LAM in every byte but those of pk_cid in packets without data, which LAM does not set.
#include <gtest/gtest.h>

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/hex.h"
#include "impi/agent/agent.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

Announcement Lam(const char* address, uint32_t port, int64_t number) {
  const HostId host = HostIdOfIpv4(inet_addr(address));
  return {.data_length = 65536, .tag_upper_bound = INT32_MAX, .hosts = {{host, port, 10, 20, {{host, number}}}}};
}

TEST(ImpiAgentReplay, AJobOfLamGoesThrough) {
  const std::vector<Announcement> clients{Lam("127.0.0.2", 60649, 2211), Lam("127.0.0.1", 34853, 2209)};
  const Job job = testing::JobOf(clients, 0);
  Agent agent(job, {.host = HostRank(0), .lam_clients = 2}, {});
  std::ifstream capture("impi/agent/testdata/lam_packets.txt");
  ASSERT_TRUE(capture.is_open());
  std::array<int, static_cast<size_t>(kLastPacketType) + 1> seen{};
  std::string line;
  while (std::getline(capture, line)) {
    if (line.starts_with('#')) continue;
    std::array<uint8_t, Packet::kSize> header;
    ASSERT_TRUE(ParseHex(std::string_view(line).substr(2), header)) << line;
    const auto packet = Packet::Parse(header, job.limits());
    ASSERT_TRUE(packet.ok()) << packet.error();
    ++seen[static_cast<size_t>(packet->type)];
    const bool from_peer = line[0] == '1';
    const Agent::Port from = from_peer ? Agent::Port(HostRank(1)) : Agent::Port(WorldRank(0)), to = from_peer ? Agent::Port(WorldRank(0)) : Agent::Port(HostRank(1));
    agent.OnBytes(from, header, {});
    agent.OnBytes(from, std::vector<uint8_t>(packet->data_length, 0x5a), {});
    ASSERT_NE(agent.state(), Agent::State::kFailed) << agent.reason() << "\n" << line;
    std::array<ByteSpan, 2> out;
    const size_t count = agent.Gather(to, out);
    if (from_peer && packet->type == PacketType::kFini) {
      EXPECT_EQ(count, 0u) << "it is for the agent";
      continue;
    }
    ASSERT_EQ(count, 1u) << line;
    ASSERT_EQ(out[0].size(), Packet::kSize + packet->data_length);
    const auto again = Packet::Parse(std::span<const uint8_t, Packet::kSize>(out[0].data(), Packet::kSize), job.limits());
    ASSERT_TRUE(again.ok()) << again.error();
    if (from_peer) {
      EXPECT_EQ(*again, *packet);
    } else {
      constexpr size_t kContextAt = 88;
      if (!packet->has_data()) std::fill_n(header.begin() + kContextAt, sizeof(uint64_t), uint8_t{0});
      EXPECT_EQ(HexOf(out[0].first(Packet::kSize)), HexOf(header)) << line;
    }
    agent.Wrote(to, out[0].size(), {});
  }
  EXPECT_EQ(agent.state(), Agent::State::kEnded);
  for (const PacketType type : {PacketType::kData, PacketType::kDataSync, PacketType::kProtocolAck, PacketType::kSyncAck}) {
    EXPECT_GT(seen[static_cast<size_t>(type)], 0) << NameOf(type);
  }
  EXPECT_EQ(seen[static_cast<size_t>(PacketType::kFini)], 2);
}

}  // namespace
}  // namespace weft::impi
