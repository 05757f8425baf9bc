#include "impi/job/job.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/hex.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

using Told = std::map<Label, Collected>;

HostId Ipv4(const char* text) { return HostIdOfIpv4(inet_addr(text)); }

HostId Mapped(HostId host) {
  host[10] = host[11] = 0xff;
  return host;
}

// What the server told two LAM/MPI clients, in a capture.
Told Captured() {
  Told told;
  for (const auto& [label, digits] : std::initializer_list<std::pair<Label, const char*>>{
           {Label::kVersion, "00000000000000000000000000000000"},
           {Label::kHosts, "0000000100000001"},
           {Label::kProcesses, "0000000100000001"},
           {Label::kDataLength, "0001000000010000"},
           {Label::kTagUpperBound, "7fffffff7fffffff"},
           {Label::kCrossoverSize, "ffffffffffffffff"},
           {Label::kMaxLinear, "ffffffffffffffff"},
           {Label::kHostAddress, "0000000000000000000000007f0000020000000000000000000000007f000001"},
           {Label::kHostPort, "0000ece900008825"},
           {Label::kHostProcesses, "0000000100000001"},
           {Label::kHostAckMark, "0000000a0000000a"},
           {Label::kHostHighWater, "0000001400000014"},
           {Label::kProcessAddress, "0000000000000000000000007f0000020000000000000000000000007f000001"},
           {Label::kProcessNumber, "00000000000008a300000000000008a1"}}) {
    Collected collected{label, 3, Bytes(std::string_view(digits).size() / 2)};
    EXPECT_TRUE(ParseHex(digits, collected.values));
    told.emplace(label, collected);
  }
  return told;
}

Announcement CapturedClient1() {
  return {.data_length = 65536,
          .tag_upper_bound = INT32_MAX,
          .hosts = {{.address = Ipv4("127.0.0.1"), .port = 34853, .ack_mark = 10, .high_water = 20, .processes = {{Ipv4("127.0.0.1"), 2209}}}}};
}

TEST(ImpiJob, OfLamIsWhatItsPacketsShow) {
  const auto job = Job::Of(2, Captured(), ClientRank(1), CapturedClient1());
  ASSERT_TRUE(job.ok()) << job.error();
  EXPECT_EQ(job->clients(), 2);
  EXPECT_EQ(job->hosts().size(), 2u);
  EXPECT_EQ(TextOf(job->hosts()[0].address), "127.0.0.2");
  EXPECT_EQ(job->hosts()[0].port, 60649);
  EXPECT_EQ(job->limits().data_length, 65536u);
  EXPECT_EQ(job->limits().tag, INT32_MAX);
  EXPECT_EQ(job->ack_mark(), 10u);
  EXPECT_EQ(job->high_water(), 20u);
  EXPECT_EQ(job->crossover_size(), 1024);
  EXPECT_EQ(job->max_linear(), 4);
  EXPECT_EQ(job->Find({Ipv4("127.0.0.2"), 2211}), WorldRank(0));
  EXPECT_EQ(job->Find({Ipv4("127.0.0.1"), 2209}), WorldRank(1));
  EXPECT_EQ(job->Find({Ipv4("127.0.0.1"), 2211}), std::nullopt);
  EXPECT_EQ(job->NameOf(WorldRank(0)), "rank 0 (127.0.0.2/2211) of client 0");
}

TEST(ImpiJob, WhatAClientSaysIsWhatLamSays) {
  Told told = Captured();
  std::vector<Collected> labels = CapturedClient1().ToLabels();
  ASSERT_EQ(labels.size(), told.size());
  for (const Collected& said : labels) {
    const Bytes& both = told.at(said.label).values;
    EXPECT_EQ(HexOf(said.values), HexOf(ByteSpan(both).subspan(both.size() / 2))) << impi::NameOf(said.label);
  }
}

// The example of section 2.3.4.
TEST(ImpiJob, RanksAscendByClientsAndHosts) {
  const auto job = testing::JobOf(testing::Announcements({{2, 2, 2}, {3, 3}, {4, 4}}), 2);
  ASSERT_EQ(job.hosts().size(), 7u);
  ASSERT_EQ(job.processes().size(), 20u);
  EXPECT_EQ(job.host(HostRank(3)).client, ClientRank(1));
  EXPECT_EQ(job.host(HostRank(3)).first, WorldRank(6));
  EXPECT_EQ(job.host(HostRank(6)).first, WorldRank(16));
  EXPECT_EQ(job.process(WorldRank(15)).host, HostRank(5));
  EXPECT_EQ(job.NameOf(HostRank(5)), "host 5 of client 2 (192.0.2.6)");
  for (int rank = 0; rank < 20; ++rank) EXPECT_EQ(job.Find(job.process(WorldRank(rank)).name), WorldRank(rank));
}

TEST(ImpiJob, TheLeastOfAllCounts) {
  auto clients = testing::Announcements({{1, 1}, {1}});
  clients[0].data_length = 5000;
  clients[1].data_length = 1000;
  clients[1].tag_upper_bound = INT32_MAX;
  clients[0].hosts[1].ack_mark = 3;
  clients[0].hosts[0].high_water = 1000;
  clients[0].hosts[0].ack_mark = 900;
  clients[1].hosts[0].high_water = 5;
  clients[1].hosts[0].ack_mark = 5;
  for (auto& client : clients) {
    client.crossover_size = 0;
    client.max_linear = 7;
  }
  const Job job = testing::JobOf(clients, 0);
  EXPECT_EQ(job.limits().data_length, 1000u);
  EXPECT_EQ(job.limits().tag, 32767);
  EXPECT_EQ(job.ack_mark(), 3u);
  EXPECT_EQ(job.high_water(), 4u);
  EXPECT_EQ(job.crossover_size(), 0);
  EXPECT_EQ(job.max_linear(), 7);
}

TEST(ImpiJob, NamesAreKeptAsAnnouncedAndFoundInBothForms) {
  auto clients = testing::Announcements({{1}, {1}});
  clients[1].hosts[0].address = Mapped(clients[1].hosts[0].address);
  clients[1].hosts[0].processes[0].host = clients[1].hosts[0].address;
  const Job job = testing::JobOf(clients, 0);
  EXPECT_EQ(job.host(HostRank(1)).address, Mapped(Ipv4("192.0.2.2")));
  EXPECT_EQ(job.process(WorldRank(1)).name.host, Mapped(Ipv4("192.0.2.2")));
  EXPECT_EQ(job.Find({Ipv4("192.0.2.2"), 101}), WorldRank(1));
  EXPECT_EQ(job.Find({Mapped(Ipv4("192.0.2.2")), 101}), WorldRank(1));
  EXPECT_EQ(job.Find({Mapped(Ipv4("192.0.2.1")), 100}), WorldRank(0));
}

TEST(ImpiJob, TheVersionIsTheHighestThatAllHave) {
  auto clients = testing::Announcements({{1}, {1}, {1}});
  Told told = testing::Tell(clients);
  const auto versions = [&](const char* digits) {
    Bytes& values = told.at(Label::kVersion).values;
    values.resize(std::string_view(digits).size() / 2);
    EXPECT_TRUE(ParseHex(digits, values));
    const auto job = Job::Of(3, told, ClientRank(0), clients[0]);
    return job.ok() ? std::to_string(job->version().first) + "." + std::to_string(job->version().second) : job.error();
  };
#define V00 "0000000000000000"
#define V01 "0000000000000001"
#define V10 "0000000100000000"
  EXPECT_EQ(versions(V00 V00 V00), "0.0");
  EXPECT_EQ(versions(V00 V00 V01 V00 V01 V10), "0.0");
  EXPECT_EQ(versions(V00 V01 V00 V01 V00 V01 V10), "0.1") << "the example of the specification, with a client that has more than this one";
  EXPECT_EQ(versions(V00 V00 V01), "IMPI_C_VERSION has version 0.0 2 times; each of the 3 clients has to have it");
  EXPECT_EQ(versions(V00 V00 V00 V00), "IMPI_C_VERSION has version 0.0 4 times; each of the 3 clients has to have it");
  EXPECT_EQ(versions(V01 V00 V00), "client 0 or the one behind it said version 0.1 in IMPI_C_VERSION without version 0.0; each client begins with 0.0, and ascends");
  EXPECT_EQ(versions(V00 V10 V01 V00 V00),
            "client 0 or the one behind it said version 0.1 in IMPI_C_VERSION out of order; each client begins with 0.0, and ascends");
  EXPECT_EQ(versions(V00 V00 V00 "00"), "IMPI_C_VERSION of all clients has 25 bytes, which is not a multiple of 8");
  EXPECT_EQ(versions(""), "IMPI_C_VERSION has version 0.0 0 times; each of the 3 clients has to have it");
#undef V00
#undef V01
#undef V10
}

TEST(ImpiJob, EachLabelIsWantedFromEachClientAndInFull) {
  const auto clients = testing::Announcements({{1}, {1}});
  const Told told = testing::Tell(clients);
  const auto why = [&](const Told& changed) {
    const auto job = Job::Of(2, changed, ClientRank(0), clients[0]);
    return job.ok() ? "" : job.error();
  };
  EXPECT_EQ(why(told), "");
  for (const auto& [label, collected] : told) {
    Told changed = told;
    changed.erase(label);
    EXPECT_EQ(why(changed), "client 0 did not say " + impi::NameOf(label) + ", which version 0.0 of IMPI wants from all clients");
    changed = told;
    changed.at(label).clients = 1;
    EXPECT_EQ(why(changed), "client 1 did not say " + impi::NameOf(label) + ", which version 0.0 of IMPI wants from all clients");
    for (const size_t size : {size_t{0}, collected.values.size() - 1, collected.values.size() + 1, 2 * collected.values.size()}) {
      changed = told;
      changed.at(label).values.resize(size);
      EXPECT_NE(why(changed), "") << impi::NameOf(label) << " " << size;
    }
  }
}

TEST(ImpiJob, AValueThatCannotBeIsNamed) {
  const auto why = [](const std::function<void(std::vector<Announcement>&)>& change) {
    auto clients = testing::Announcements({{2}, {1, 1}});
    change(clients);
    const auto job = Job::Of(2, testing::Tell(clients), ClientRank(0), clients[0]);
    return job.ok() ? "" : job.error();
  };
  EXPECT_EQ(why([](auto& clients) { clients[1].hosts.clear(); }), "client 1 has 0 hosts (IMPI_C_NHOSTS); 1 is the least");
  EXPECT_EQ(why([](auto& clients) { clients[0].hosts[0].processes.clear(); }), "client 0 has 0 processes (IMPI_C_NPROCS); 1 is the least");
  EXPECT_EQ(why([](auto& clients) { clients[1].data_length = 0; }), "client 1 takes packets with 0 bytes of data (IMPI_C_DATALEN); 1 is the least");
  EXPECT_EQ(why([](auto& clients) { clients[1].tag_upper_bound = 32766; }), "client 1 has tags up to 32766 (IMPI_C_TAGUB); 32767 is the least");
  EXPECT_EQ(why([](auto& clients) { clients[0].crossover_size = -2; }), "client 0 said -2 for IMPI_C_COLL_XSIZE; -1 is the least");
  EXPECT_EQ(why([](auto& clients) { clients[1].crossover_size = 1024; }),
            "client 1 said 1024 for IMPI_C_COLL_XSIZE and client 0 said -1; set the same number at all clients, or at none");
  EXPECT_EQ(why([](auto& clients) { clients[1].max_linear = 5; }),
            "client 1 said 5 for IMPI_C_COLL_MAXLINEAR and client 0 said -1; set the same number at all clients, or at none");
  EXPECT_EQ(why([](auto& clients) { clients[1].hosts[0].address = {}; }), "host 1 of client 1 (0.0.0.0) has no address (IMPI_H_IPV6)");
  for (const uint32_t port : {0u, 65536u}) {
    EXPECT_EQ(why([&](auto& clients) { clients[1].hosts[1].port = port; }),
              "host 2 of client 1 (192.0.2.3) has the port " + std::to_string(port) + " (IMPI_H_PORT); 1 to 65535 are ports");
  }
  EXPECT_EQ(why([](auto& clients) { clients[0].hosts[0].ack_mark = 0; }),
            "host 0 of client 0 (192.0.2.1) has an ackmark of 0 (IMPI_H_ACKMARK) and a hiwater of 4 (IMPI_H_HIWATER); 1 <= ackmark <= hiwater is wanted");
  EXPECT_EQ(why([](auto& clients) { clients[0].hosts[0].ack_mark = 5; }),
            "host 0 of client 0 (192.0.2.1) has an ackmark of 5 (IMPI_H_ACKMARK) and a hiwater of 4 (IMPI_H_HIWATER); 1 <= ackmark <= hiwater is wanted");
  EXPECT_EQ(why([](auto& clients) {
              clients[1].hosts[1].port = 5000;
              clients[1].hosts[1].address = Mapped(clients[0].hosts[0].address);
            }),
            "host 2 of client 1 (192.0.2.1) listens at port 5000, as host 0 of client 0 (192.0.2.1) does");
  EXPECT_EQ(why([](auto& clients) { clients[1].hosts[1].processes[0] = {Mapped(clients[0].hosts[0].address), 101}; }),
            "rank 1 (192.0.2.1/101) of client 0 and rank 3 (192.0.2.1/101) of client 1 have one name (IMPI_P_IPV6 and IMPI_P_PID)");
}

TEST(ImpiJob, HostsHaveAsManyProcessesAsTheirClient) {
  const auto clients = testing::Announcements({{2}, {1, 1}});
  const auto why = [&](const Bytes& counts) {
    Told told = testing::Tell(clients);
    told.at(Label::kHostProcesses).values = counts;
    return Job::Of(2, told, ClientRank(0), clients[0]).error();
  };
  EXPECT_EQ(why({0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 2}), "client 0 has 2 processes (IMPI_C_NPROCS), and its hosts have 1 (IMPI_H_NPROCS)");
  EXPECT_EQ(why({0, 0, 0, 2, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff}), "client 1 has 2 processes (IMPI_C_NPROCS), and its hosts have more (IMPI_H_NPROCS)");
  Told told = testing::Tell(clients);
  told.at(Label::kProcesses).values = {0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 2};
  EXPECT_EQ(Job::Of(2, told, ClientRank(0), clients[0]).error(), "the clients have 2147483649 processes (IMPI_C_NPROCS); ranks have 31 bits");
}

TEST(ImpiJob, WhatThisClientSaidHasToComeBack) {
  const auto clients = testing::Announcements({{2}, {1, 1}});
  auto other = clients[1];
  other.hosts[1].processes[0].number = 7;
  EXPECT_EQ(Job::Of(2, testing::Tell(clients), ClientRank(1), other).error(),
            "the server gave back other values for client 1 than this client had sent");
  EXPECT_TRUE(Job::Of(2, testing::Tell(clients), ClientRank(1), clients[1]).ok());
}

}  // namespace
}  // namespace weft::impi
