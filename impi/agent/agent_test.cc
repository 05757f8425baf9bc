#include "impi/agent/agent.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/hex.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

using State = Agent::State;
using std::chrono::seconds;

// Client 0 has host 0 with the processes 0 and 1, and host 1 with process 2. Client 1 has host 2 with 3 and 4, client 2 has host 3 with 5. The agent is that of
// host 0. DATALEN is 100, ackmark 2, hiwater 4.
class AgentTest : public ::testing::Test {
 protected:
  void Begin(Agent::Setup setup = {}) { agent.emplace(job, setup, now); }
  ProcessName Name(int rank) const { return job.process(WorldRank(rank)).name; }
  Packet Of(PacketType type, int source, int destination, uint32_t length = 0) const {
    Packet packet{.type = type, .source = Name(source), .destination = Name(destination)};
    if (packet.has_data()) packet.data_length = length;
    if (packet.has_data()) packet.message_length = length;
    return packet;
  }
  static std::vector<uint8_t> Written(const Packet& packet) {
    CarriedPacket carried(packet);
    carried.WriteHeader();
    std::fill(carried.data().begin(), carried.data().end(), 0x55);
    return {carried.bytes.get(), carried.bytes.get() + carried.size()};
  }
  void Send(Agent::Port port, const Packet& packet) { agent->OnBytes(port, Written(packet), now); }
  void FromHost(int host, PacketType type, int source, int destination, uint32_t length = 0) {
    Send(HostRank(host), Of(type, source, destination, length));
  }
  void FromProcess(PacketType type, int source, int destination, uint32_t length = 0) {
    Send(WorldRank(source), Of(type, source, destination, length));
  }
  void Fini(Agent::Port port) { Send(port, {.type = PacketType::kFini, .source = {{}, -1}, .destination = {{}, -1}}); }
  // All that waits for a connection, as it leaves.
  std::vector<uint8_t> Bytes(Agent::Port port) {
    std::vector<uint8_t> bytes;
    std::array<ByteSpan, 4> into;
    while (const size_t count = agent->Gather(port, into)) {
      size_t wrote = 0;
      for (size_t i = 0; i < count; ++i) {
        bytes.insert(bytes.end(), into[i].begin(), into[i].end());
        wrote += into[i].size();
      }
      agent->Wrote(port, wrote, now);
    }
    return bytes;
  }
  // The same as "DATA 3 > 0".
  std::vector<std::string> Left(Agent::Port port) {
    std::vector<std::string> left;
    const std::vector<uint8_t> stream = Bytes(port);
    ByteSpan bytes(stream);
    Inlet inlet(job.limits());
    for (;;) {
      auto taken = inlet.Take(bytes);
      EXPECT_TRUE(taken.ok());
      if (!taken.ok() || !*taken) break;
      const Packet& packet = (*taken)->packet;
      std::string text = NameOf(packet.type);
      if (packet.type != PacketType::kFini) {
        text += " " + std::to_string(job.Find(packet.source)->value) + " > " + std::to_string(job.Find(packet.destination)->value);
      }
      left.push_back(text);
    }
    return left;
  }
  std::string Why() {
    EXPECT_EQ(agent->state(), State::kFailed);
    EXPECT_EQ(agent->deadline(), std::nullopt);
    EXPECT_FALSE(agent->MayRead(HostRank(2)));
    EXPECT_TRUE(agent->TakeReady().empty());
    return agent->reason();
  }

  using Texts = std::vector<std::string>;
  std::vector<Announcement> clients = testing::Announcements({{2, 1}, {2}, {1}});
  Job job = testing::JobOf(clients, 0);
  Agent::Time now{};
  std::optional<Agent> agent;
};

TEST_F(AgentTest, CarriesPacketsToTheHostAndTheProcessTheyAreFor) {
  Begin();
  FromProcess(PacketType::kData, 0, 3, 10);
  FromProcess(PacketType::kDataSync, 1, 4);
  FromProcess(PacketType::kCancel, 0, 5);
  FromHost(2, PacketType::kData, 4, 1, 100);
  FromHost(3, PacketType::kSyncAck, 5, 0);
  FromHost(3, PacketType::kCancelNo, 5, 1);
  EXPECT_EQ(agent->TakeReady(), (std::vector<Agent::Port>{HostRank(2), HostRank(3), WorldRank(1), WorldRank(0)}));
  EXPECT_EQ(Left(HostRank(2)), (Texts{"DATA 0 > 3", "DATASYNC 1 > 4"}));
  EXPECT_EQ(Left(HostRank(3)), Texts{"CANCEL 0 > 5"});
  EXPECT_EQ(Left(WorldRank(0)), Texts{"SYNCACK 5 > 0"});
  EXPECT_EQ(Left(WorldRank(1)), (Texts{"DATA 4 > 1", "CANCELNO 5 > 1"}));
  EXPECT_EQ(agent->state(), State::kRunning) << agent->reason();
}

TEST_F(AgentTest, DataAndFieldsArriveAsTheyWere) {
  Begin();
  Packet packet = Of(PacketType::kData, 4, 1, 3);
  packet.message_length = 5;
  packet.tag = 77;
  packet.context = 9;
  packet.source_rank = 2;
  packet.source_request = 1;
  packet.destination_request = 2;
  packet.sequence = 3;
  packet.count = 4;
  packet.datatype = 5;
  Send(HostRank(2), packet);
  EXPECT_EQ(HexOf(Bytes(WorldRank(1))), HexOf(Written(packet)));
}

// LAM compares 16 bytes.
TEST_F(AgentTest, NamesGoOutAsTheyWereAnnouncedAndComeInCanonical) {
  clients[1].hosts[0].processes[0].host[10] = clients[1].hosts[0].processes[0].host[11] = 0xff;
  job = testing::JobOf(clients, 0);
  Begin();
  Packet packet = Of(PacketType::kData, 0, 3);
  packet.destination.host = Canonical(packet.destination.host);
  packet.source.host[10] = packet.source.host[11] = 0xff;
  Send(WorldRank(0), packet);
  EXPECT_EQ(HexOf(Bytes(HostRank(2))), HexOf(Written(Of(PacketType::kData, 0, 3))));
  Send(HostRank(2), Of(PacketType::kData, 3, 0));
  packet = Of(PacketType::kData, 3, 0);
  packet.source.host = Canonical(packet.source.host);
  EXPECT_EQ(HexOf(Bytes(WorldRank(0))), HexOf(Written(packet)));
}

TEST_F(AgentTest, AcknowledgementsGoBeforeDataInEachDirection) {
  Begin();
  FromHost(2, PacketType::kData, 3, 0);
  FromHost(2, PacketType::kData, 3, 0);
  FromHost(2, PacketType::kProtocolAck, 3, 0);
  FromProcess(PacketType::kData, 0, 3);
  FromProcess(PacketType::kProtocolAck, 0, 3);
  EXPECT_EQ(Left(WorldRank(0)), (Texts{"PROTOACK 3 > 0", "DATA 3 > 0", "DATA 3 > 0"}));
  EXPECT_EQ(Left(HostRank(2)), (Texts{"PROTOACK 0 > 3", "DATA 0 > 3"}));
}

TEST_F(AgentTest, AFullAccountStopsReadingFromItsConnectionOnly) {
  Begin({.host_budget = 300, .process_budget = 300});
  FromProcess(PacketType::kData, 0, 3, 100);
  EXPECT_TRUE(agent->MayRead(WorldRank(0)));
  FromProcess(PacketType::kData, 0, 5, 100);
  EXPECT_FALSE(agent->MayRead(WorldRank(0)));
  EXPECT_EQ(agent->account(WorldRank(0)), 456u);
  EXPECT_TRUE(agent->MayRead(WorldRank(1)));
  FromHost(2, PacketType::kData, 3, 1, 100);
  FromHost(2, PacketType::kData, 4, 0, 100);
  EXPECT_FALSE(agent->MayRead(HostRank(2)));
  EXPECT_TRUE(agent->MayRead(HostRank(3)));
  EXPECT_TRUE(agent->TakeReadable().empty());
  Left(HostRank(3));
  EXPECT_TRUE(agent->MayRead(WorldRank(0)));
  EXPECT_EQ(agent->TakeReadable(), std::vector<Agent::Port>{WorldRank(0)});
  Left(WorldRank(1));
  EXPECT_EQ(agent->TakeReadable(), std::vector<Agent::Port>{HostRank(2)});
  EXPECT_EQ(agent->account(HostRank(2)), 228u);
}

TEST_F(AgentTest, AHostThatIgnoresHiwaterIsFoundOut) {
  Begin();
  for (int i = 0; i < 4; ++i) FromHost(2, PacketType::kData, 3, 0);
  for (int i = 0; i < 4; ++i) FromHost(2, PacketType::kData, 4, 0);
  for (int i = 0; i < 100; ++i) FromHost(2, PacketType::kSyncAck, 3, 0);
  EXPECT_EQ(agent->state(), State::kRunning) << agent->reason();
  Left(WorldRank(0));
  for (int i = 0; i < 4; ++i) FromHost(2, PacketType::kData, 3, 0);
  EXPECT_EQ(agent->state(), State::kRunning) << "the process counts those that it took";
  FromHost(2, PacketType::kDataSync, 3, 0);
  EXPECT_EQ(Why(),
            "host 2 of client 1 (192.0.2.3) sent more than 4 packets from rank 3 to rank 0 without an acknowledgement; the hosts agreed on that many "
            "(IMPI_H_HIWATER)");
}

TEST_F(AgentTest, WhatAHostMustNotSendIsNamed) {
  const auto why = [&](auto send) {
    Begin();
    send();
    return Why();
  };
  const std::string host = "host 2 of client 1 (192.0.2.3) ";
  Packet packet = Of(PacketType::kData, 3, 0, 10);
  const auto with = [&](auto change) {
    Packet changed = packet;
    change(changed);
    return why([&] { Send(HostRank(2), changed); });
  };
  EXPECT_EQ(with([](Packet& one) { one.source.number = 7; }), host + "sent DATA from 192.0.2.3/7, which is no process of it");
  EXPECT_EQ(with([&](Packet& one) { one.source = Name(5); }), host + "sent DATA from 192.0.2.4/105, which is no process of it");
  EXPECT_EQ(with([&](Packet& one) { one.source = Name(0); }), host + "sent DATA from 192.0.2.1/100, which is no process of it");
  EXPECT_EQ(with([](Packet& one) { one.destination.host = {}; }), host + "sent DATA to 0.0.0.0/100, which is no process of host 0 of client 0 (192.0.2.1)");
  EXPECT_EQ(with([&](Packet& one) { one.destination = Name(2); }), host + "sent DATA to 192.0.2.2/102, which is no process of host 0 of client 0 (192.0.2.1)");
  EXPECT_EQ(with([&](Packet& one) { one.destination = Name(4); }), host + "sent DATA to 192.0.2.3/104, which is no process of host 0 of client 0 (192.0.2.1)");
  EXPECT_EQ(with([](Packet& one) { one.data_length = one.message_length = 101; }),
            host + "sent a packet that is wrong: pk_len is 101; the hosts agreed on at most 100 (IMPI_C_DATALEN)");
  EXPECT_EQ(with([](Packet& one) { one.tag = 32768; }),
            host + "sent a packet that is wrong: pk_tag is 32768; the clients agreed on 0 to 32767 (IMPI_C_TAGUB)");
  EXPECT_EQ(why([&] {
              auto bytes = Written(packet);
              bytes[3] = 8;
              agent->OnBytes(HostRank(2), bytes, now);
            }),
            host + "sent a packet that is wrong: pk_type is 8; the highest one is 7");
  for (const PacketType type : {PacketType::kData, PacketType::kDataSync, PacketType::kCancel}) {
    EXPECT_EQ(why([&] {
                Fini(HostRank(2));
                FromHost(2, type, 3, 0);
              }),
              host + "sent " + NameOf(type) + " after FINI; only acknowledgements may follow");
  }
  EXPECT_EQ(why([&] {
              Fini(HostRank(2));
              FromHost(2, PacketType::kProtocolAck, 3, 0);
              FromHost(2, PacketType::kSyncAck, 3, 0);
              Fini(HostRank(2));
            }),
            host + "sent FINI a second time");
}

TEST_F(AgentTest, WhatAProcessMustNotSendIsNamed) {
  const auto why = [&](auto send) {
    Begin();
    send();
    return Why();
  };
  const std::string rank = "rank 0 (192.0.2.1/100) of client 0 ";
  EXPECT_EQ(why([&] { Send(WorldRank(0), Of(PacketType::kData, 1, 3)); }), rank + "sent DATA in the name of 192.0.2.1/101");
  EXPECT_EQ(why([&] { FromProcess(PacketType::kData, 0, 1); }), rank + "sent DATA to rank 1 of its own client through the agent");
  EXPECT_EQ(why([&] { FromProcess(PacketType::kData, 0, 2); }), rank + "sent DATA to rank 2 of its own client through the agent");
  EXPECT_EQ(why([&] {
              Packet packet = Of(PacketType::kData, 0, 3);
              packet.destination.number = 1;
              Send(WorldRank(0), packet);
            }),
            rank + "sent DATA to 192.0.2.3/1, which is no process of this job");
  EXPECT_EQ(why([&] {
              FromHost(2, PacketType::kData, 3, 0);
              FromProcess(PacketType::kProtocolAck, 0, 3);
            }),
            rank + "acknowledged 2 packets of rank 3, and has 1");
  EXPECT_EQ(why([&] {
              Fini(WorldRank(0));
              FromProcess(PacketType::kData, 0, 3);
            }),
            rank + "sent DATA after FINI");
  EXPECT_EQ(why([&] { agent->OnClosed(WorldRank(0)); }), rank + "ended without MPI_Finalize");
}

// --- section 3.8 ---

TEST_F(AgentTest, EndsWhenFiniWentBothWaysOnEachConnection) {
  Begin();
  Fini(WorldRank(0));
  agent->OnClosed(WorldRank(0));
  EXPECT_TRUE(agent->HasEnded(WorldRank(0)));
  EXPECT_TRUE(Left(HostRank(2)).empty()) << "process 1 may still send";
  FromProcess(PacketType::kData, 1, 3);
  FromProcess(PacketType::kData, 1, 5);
  Fini(HostRank(2));
  FromProcess(PacketType::kData, 1, 3);
  Fini(WorldRank(1));
  EXPECT_EQ(Left(HostRank(2)), (Texts{"DATA 1 > 3", "DATA 1 > 3", "FINI"})) << "the host takes all until it has FINI";
  EXPECT_TRUE(agent->IsOver(HostRank(2)));
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(agent->state(), State::kRunning);
  EXPECT_EQ(Left(HostRank(3)), (Texts{"DATA 1 > 5", "FINI"}));
  EXPECT_FALSE(agent->IsOver(HostRank(3)));
  FromHost(3, PacketType::kProtocolAck, 5, 1);
  Fini(HostRank(3));
  EXPECT_EQ(agent->state(), State::kEnded) << agent->reason();
  EXPECT_EQ(agent->deadline(), std::nullopt);
  agent->OnClosed(HostRank(3));
  EXPECT_EQ(agent->state(), State::kEnded);
}

// What the capture of two LAM/MPI clients ends with, but for the number: here it is the first packet.
const std::string kFiniOfLam =
    "00000007" "00000080" "00000000000000000000000000000000ffffffffffffffff" "00000000000000000000000000000000ffffffffffffffff"
    "0000000000000000" "0000000000000000" "0000000000000080" "ffffffff" "ffffffff" "0000000000000000" "0000000000000001"
    "ffffffffffffffff" "0000000000000000" "0000000000000000";

TEST_F(AgentTest, LamGetsAndSendsFiniInItsOwnWay) {
  for (const bool lam : {false, true}) {
    Begin({.lam_clients = lam ? 2u : 0u});
    Fini(WorldRank(0));
    Fini(WorldRank(1));
    EXPECT_EQ(HexOf(Bytes(HostRank(2))), lam ? kFiniOfLam
                                                 : "00000007" "00000000" + std::string(32, '0') + std::string(16, 'f') + std::string(32, '0') +
                                                       std::string(16, 'f') + std::string(2 * 72, '0'));
  }
  std::vector<uint8_t> lam(Packet::kSize);
  ASSERT_TRUE(ParseHex(kFiniOfLam, lam));
  agent->OnBytes(HostRank(2), lam, now);
  EXPECT_TRUE(agent->IsOver(HostRank(2))) << agent->reason();
}

TEST_F(AgentTest, AcknowledgesInThePlaceOfAProcessThatHasEnded) {
  Begin();
  for (int i = 0; i < 3; ++i) FromHost(2, PacketType::kData, 3, 0);
  EXPECT_EQ(Left(WorldRank(0)).size(), 3u);
  FromProcess(PacketType::kProtocolAck, 0, 3);
  FromHost(2, PacketType::kData, 3, 0, 100);
  FromHost(2, PacketType::kData, 3, 0);
  Fini(WorldRank(0));
  EXPECT_TRUE(Left(WorldRank(0)).empty()) << "discarded";
  EXPECT_EQ(agent->account(HostRank(2)), 0u);
  EXPECT_EQ(Left(HostRank(2)), (Texts{"PROTOACK 0 > 3", "PROTOACK 0 > 3"})) << "of five packets, one is left";
  FromHost(2, PacketType::kDataSync, 3, 0, 10);
  EXPECT_EQ(Left(HostRank(2)), (Texts{"PROTOACK 0 > 3"}));
  FromHost(2, PacketType::kProtocolAck, 3, 0);
  FromHost(2, PacketType::kCancel, 3, 0);
  EXPECT_TRUE(Left(HostRank(2)).empty());
  FromHost(2, PacketType::kData, 3, 1);
  EXPECT_EQ(Left(WorldRank(1)), Texts{"DATA 3 > 1"});
  EXPECT_EQ(agent->account(HostRank(2)), 0u);
}

TEST_F(AgentTest, MemoryIsBoundedAlsoForAProcessThatHasEnded) {
  Begin();
  Fini(WorldRank(0));
  for (int i = 0; i < 8; ++i) FromHost(2, PacketType::kData, 3, 0, 100);
  EXPECT_EQ(agent->state(), State::kRunning) << agent->reason();
  for (int i = 0; i < 8 && agent->state() == State::kRunning; ++i) FromHost(2, PacketType::kSyncAck, 3, 0);
  EXPECT_EQ(Why(), "host 2 of client 1 (192.0.2.3) sends from rank 3 to rank 0, and does not wait for acknowledgements (IMPI_H_HIWATER)");
}

TEST_F(AgentTest, AHostThatLeavesEndsTheJobAtEachStep) {
  const std::string host = "host 2 of client 1 (192.0.2.3) ", early = "left before it sent FINI; its own messages may say why";
  Begin();
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(Why(), host + early);
  Begin();
  agent->OnBytes(HostRank(2), std::vector<uint8_t>(100), now);
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(Why(), host + early);
  Begin();
  FromProcess(PacketType::kData, 0, 3, 50);
  FromHost(2, PacketType::kData, 3, 0, 50);
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(Why(), host + early);
  Begin();
  Fini(WorldRank(0));
  Fini(WorldRank(1));
  Left(HostRank(2));
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(Why(), host + early);
  Begin();
  Fini(HostRank(2));
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(Why(), host + "closed its connection before it had this host's FINI");
  Begin();
  Fini(HostRank(2));
  Fini(WorldRank(0));
  Fini(WorldRank(1));
  agent->OnClosed(HostRank(2));
  EXPECT_EQ(Why(), host + "closed its connection before it had this host's FINI");
}

TEST_F(AgentTest, AHostThatNeverEndsIsNamedInTime) {
  Begin();
  EXPECT_EQ(agent->deadline(), std::nullopt) << "a job may take as long as it takes";
  Fini(WorldRank(0));
  Fini(WorldRank(1));
  Fini(HostRank(3));
  EXPECT_EQ(agent->deadline(), now + seconds(60));
  now += seconds(50);
  Left(HostRank(2));
  EXPECT_EQ(agent->deadline(), now + seconds(60)) << "it reads";
  now += seconds(50);
  FromHost(2, PacketType::kData, 3, 0);
  EXPECT_EQ(agent->deadline(), now + seconds(60)) << "it has something to say";
  now += seconds(60);
  agent->OnTime(now);
  EXPECT_EQ(Why(),
            "host 2 of client 1 (192.0.2.3) did not send FINI, and nothing else, within 60 seconds after all processes of host 0 of client 0 (192.0.2.1) had "
            "ended; do its processes call MPI_Finalize?");
}

TEST_F(AgentTest, AHostWithoutProcessesAndAClientThatIsAloneEndAtOnce) {
  const Job empty = testing::JobOf(testing::Announcements({{0, 1}, {1}}), 0);
  agent.emplace(empty, Agent::Setup{.host = HostRank(0)}, now);
  Send(HostRank(2), {.type = PacketType::kFini, .source = {{}, -1}, .destination = {{}, -1}});
  EXPECT_EQ(agent->state(), State::kRunning);
  EXPECT_EQ(Bytes(HostRank(2)).size(), Packet::kSize);
  EXPECT_EQ(agent->state(), State::kEnded);
  const Job alone = testing::JobOf(testing::Announcements({{1}}), 0);
  agent.emplace(alone, Agent::Setup{.host = HostRank(0)}, now);
  EXPECT_EQ(agent->state(), State::kRunning);
  Fini(WorldRank(0));
  EXPECT_EQ(agent->state(), State::kEnded);
}

}  // namespace
}  // namespace weft::impi
