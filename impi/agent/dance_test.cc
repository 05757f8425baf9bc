#include "impi/agent/dance.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>

#include "base/hex.h"
#include "impi/job/testing/jobs.h"

namespace weft::impi {
namespace {

using Step = Dance::Step;
using std::chrono::seconds;

HostId Ipv4(const std::string& text) { return HostIdOfIpv4(inet_addr(text.c_str())); }

// Hosts 0 and 1 are client 0, host 2 is client 1, hosts 3 and 4 are client 2.
class DanceTest : public ::testing::Test {
 protected:
  void Begin(int host, Dance::AddressRule rule = Dance::AddressRule::kAnnounced) {
    dance.emplace(job, Dance::Setup{.host = HostRank(host), .rule = rule}, now);
  }
  void Accept(Dance::Connection connection, const HostId& address) { dance->OnAccepted(connection, address, now); }
  void Greet(Dance::Connection connection, const HostId& address, uint32_t rank) {
    Accept(connection, address);
    if (dance->Wants(connection) == Dance::kGreeting) {
      dance->OnBytes(connection, std::vector<uint8_t>{static_cast<uint8_t>(rank >> 24), static_cast<uint8_t>(rank >> 16), static_cast<uint8_t>(rank >> 8),
                                                      static_cast<uint8_t>(rank)});
    }
  }
  // The one that is refused, and why.
  std::string Refused(Dance::Connection connection) {
    const auto refused = dance->TakeRefused();
    if (refused.size() != 1) return std::to_string(refused.size()) + " are refused";
    EXPECT_EQ(refused[0].connection, connection);
    return refused[0].why;
  }

  const Job job = testing::JobOf(testing::Announcements({{1, 1}, {1}, {1, 1}}), 1);
  Dance::Time now{};
  std::optional<Dance> dance;
};

// A capture of two LAM/MPI clients has one connection, from the host of rank 1 to that of rank 0, and these four bytes at its beginning.
TEST_F(DanceTest, TheHigherRankConnectsAndSaysItsRankAsLamDoes) {
  const Job two = testing::JobOf(testing::Announcements({{1}, {1}}), 1);
  Dance higher(two, {.host = HostRank(1)}, now);
  ASSERT_EQ(higher.step(), Step::kConnect);
  EXPECT_EQ(higher.peer(), HostRank(0));
  EXPECT_EQ(HexOf(higher.OnConnected(7)), "00000001");
  EXPECT_EQ(higher.step(), Step::kDone);
  Dance lower(two, {.host = HostRank(0)}, now);
  ASSERT_EQ(lower.step(), Step::kAccept);
  lower.OnAccepted(9, Ipv4("192.0.2.2"), now);
  lower.OnBytes(9, std::vector<uint8_t>{0, 0, 0, 1});
  EXPECT_EQ(lower.step(), Step::kDone);
  EXPECT_EQ(lower.connections(), (std::map<HostRank, Dance::Connection>{{HostRank(1), 9}}));
  EXPECT_EQ(lower.deadline(), std::nullopt);
}

TEST_F(DanceTest, ConnectsInAscendingOrderThenAcceptsInAnyOrder) {
  Begin(2);
  ASSERT_EQ(dance->step(), Step::kConnect);
  EXPECT_EQ(dance->peer(), HostRank(0));
  EXPECT_EQ(HexOf(dance->OnConnected(10)), "00000002");
  EXPECT_EQ(dance->peer(), HostRank(1));
  dance->OnConnected(11);
  ASSERT_EQ(dance->step(), Step::kAccept);
  Greet(14, Ipv4("192.0.2.5"), 4);
  ASSERT_EQ(dance->step(), Step::kAccept);
  Greet(13, Ipv4("192.0.2.4"), 3);
  ASSERT_EQ(dance->step(), Step::kDone);
  EXPECT_EQ(dance->connections(),
            (std::map<HostRank, Dance::Connection>{{HostRank(0), 10}, {HostRank(1), 11}, {HostRank(3), 13}, {HostRank(4), 14}}));
  EXPECT_TRUE(dance->TakeRefused().empty());
}

TEST_F(DanceTest, HostsOfOneClientAreNotConnected) {
  Begin(1);
  EXPECT_EQ(dance->step(), Step::kAccept);
  Begin(4);
  dance->OnConnected(10);
  dance->OnConnected(11);
  EXPECT_EQ(dance->peer(), HostRank(2));
  dance->OnConnected(12);
  EXPECT_EQ(dance->step(), Step::kDone);
  const Job alone = testing::JobOf(testing::Announcements({{1, 1}}), 0);
  EXPECT_EQ(Dance(alone, {.host = HostRank(1)}, now).step(), Step::kDone);
}

TEST_F(DanceTest, AGreetingMayComeInBytes) {
  Begin(1);
  Accept(9, Ipv4("192.0.2.3"));
  for (const uint8_t byte : {0, 0, 0, 2}) {
    EXPECT_EQ(dance->connections().size(), 0u);
    dance->OnBytes(9, std::vector<uint8_t>{byte});
  }
  EXPECT_EQ(dance->connections().size(), 1u);
  EXPECT_EQ(dance->Wants(9), 0u) << "what follows is the agent's";
}

TEST_F(DanceTest, BothFormsOfAnAddressAreTheSameHost) {
  Begin(1);
  HostId mapped = Ipv4("192.0.2.3");
  mapped[10] = mapped[11] = 0xff;
  Greet(9, mapped, 2);
  EXPECT_EQ(dance->connections().size(), 1u);
}

TEST_F(DanceTest, StrangersAreRefusedAndTheJobGoesOn) {
  Begin(2);
  dance->OnConnected(10);
  dance->OnConnected(11);
  Greet(1, Ipv4("192.0.2.99"), 3);
  EXPECT_EQ(Refused(1), "192.0.2.99 is not the address of a host that is missing");
  Greet(2, Ipv4("192.0.2.1"), 0);
  EXPECT_EQ(Refused(2), "192.0.2.1 is not the address of a host that is missing") << "it was connected to";
  const auto refused = [&](Dance::Connection connection, uint32_t rank) {
    Greet(connection, Ipv4("192.0.2.4"), rank);
    return Refused(connection);
  };
  EXPECT_EQ(refused(3, 5), "192.0.2.4 wants to be host 5; this job has the hosts 0 to 4");
  EXPECT_EQ(refused(4, ~0u), "192.0.2.4 wants to be host -1; this job has the hosts 0 to 4");
  EXPECT_EQ(refused(5, 2), "192.0.2.4 wants to be host 2, which is of this client, and connects to others only");
  EXPECT_EQ(refused(6, 4), "192.0.2.4 wants to be host 4, which announced the address 192.0.2.5; its agent has to connect from there");
  EXPECT_EQ(refused(7, 1), "192.0.2.4 wants to be host 1, which is connected already");
  Accept(20, Ipv4("192.0.2.4"));
  dance->OnClosed(20);
  EXPECT_EQ(Refused(20), "192.0.2.4 left before it said which host it is");
  Greet(13, Ipv4("192.0.2.4"), 3);
  EXPECT_EQ(refused(8, 3), "192.0.2.4 is not the address of a host that is missing");
  Accept(21, Ipv4("192.0.2.5"));
  Greet(14, Ipv4("192.0.2.5"), 4);
  EXPECT_EQ(dance->step(), Step::kDone);
  EXPECT_EQ(Refused(21), "192.0.2.5 had not said which host it is when all hosts were connected");
  Greet(22, Ipv4("192.0.2.5"), 4);
  EXPECT_EQ(Refused(22), "192.0.2.5 came when this host accepts no more");
  EXPECT_EQ(dance->connections().size(), 4u);
}

TEST_F(DanceTest, TheFirstOneIsTheHost) {
  Begin(1, Dance::AddressRule::kAny);
  Greet(1, Ipv4("198.51.100.1"), 2);
  Greet(2, Ipv4("192.0.2.3"), 2);
  EXPECT_EQ(Refused(2), "192.0.2.3 wants to be host 2, which is connected already");
  EXPECT_EQ(dance->connections().at(HostRank(2)), 1u);
  Begin(2, Dance::AddressRule::kAny);
  dance->OnConnected(10);
  dance->OnConnected(11);
  Greet(3, Ipv4("192.0.2.3"), 0);
  EXPECT_EQ(Refused(3), "192.0.2.3 wants to be host 0, which is connected already");
}

TEST_F(DanceTest, NobodyIsAcceptedBeforeItsTurn) {
  Begin(2);
  Greet(1, Ipv4("192.0.2.4"), 3);
  EXPECT_EQ(Refused(1), "192.0.2.4 came before this host accepts") << "an owner leaves it in the listener's queue";
}

TEST_F(DanceTest, SilentStrangersAreFewAndGoInTime) {
  Begin(1);
  for (Dance::Connection connection = 100; connection < 100 + Dance::kMostStrangers; ++connection) Accept(connection, Ipv4("192.0.2.3"));
  EXPECT_TRUE(dance->TakeRefused().empty());
  Accept(99, Ipv4("192.0.2.3"));
  EXPECT_EQ(Refused(99), "192.0.2.3 is turned away: 64 connections have not said which host they are");
  EXPECT_EQ(dance->deadline(), now + Dance::kGreetingPatience);
  now += Dance::kGreetingPatience;
  dance->OnTime(now);
  const auto refused = dance->TakeRefused();
  ASSERT_EQ(refused.size(), Dance::kMostStrangers);
  EXPECT_EQ(refused[0].why, "192.0.2.3 did not say which host it is within 10 seconds");
  Greet(9, Ipv4("192.0.2.3"), 2);
  EXPECT_EQ(dance->connections().size(), 1u);
}

TEST_F(DanceTest, AHostThatNeverComesEndsTheJob) {
  Begin(1);
  Greet(9, Ipv4("192.0.2.4"), 3);
  Accept(8, Ipv4("192.0.2.3"));
  now += seconds(59);
  dance->OnTime(now);
  EXPECT_EQ(dance->step(), Step::kAccept);
  EXPECT_EQ(dance->deadline(), now + seconds(1));
  now += seconds(1);
  dance->OnTime(now);
  EXPECT_EQ(dance->step(), Step::kFailed);
  EXPECT_EQ(dance->reason(),
            "host 2 of client 1 (192.0.2.3) and 1 more have not connected to 192.0.2.2 at port 5001 within 60 seconds; can it be reached from there?");
  EXPECT_EQ(dance->deadline(), std::nullopt);
  Begin(2);
  now += seconds(60);
  dance->OnTime(now);
  EXPECT_EQ(dance->reason(),
            "host 0 of client 0 (192.0.2.1) did not accept a connection at port 5000 within 60 seconds; can its address be reached from 192.0.2.3?");
  EXPECT_TRUE(dance->OnConnected(1).empty());
}

TEST_F(DanceTest, AHostThatLeavesEndsTheJob) {
  Begin(2);
  dance->OnConnectFailed("Connection refused");
  EXPECT_EQ(dance->reason(),
            "cannot connect to host 0 of client 0 (192.0.2.1) at port 5000: Connection refused; its agent should listen there until all hosts are connected");
  Begin(2);
  dance->OnConnected(10);
  dance->OnClosed(10);
  EXPECT_EQ(dance->reason(), "host 0 of client 0 (192.0.2.1) left before all hosts were connected");
}

// A connection is established when the other host listens, and waits there to be accepted; hosts act in a random order.
TEST_F(DanceTest, AllHostsFindEachOtherInAnySchedule) {
  const auto clients = testing::Announcements({{1, 1, 1}, {1}, {1, 1}, {1, 1, 1, 1}});
  const size_t count = 10;
  const Job all = testing::JobOf(clients, 0);
  for (uint32_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    struct Waiting {
      Dance::Connection connection;
      size_t from;
    };
    std::vector<std::unique_ptr<Dance>> dances;
    std::vector<std::deque<Waiting>> listening(count);
    std::map<Dance::Connection, std::vector<uint8_t>> greetings;
    for (size_t host = 0; host < count; ++host) dances.push_back(std::make_unique<Dance>(all, Dance::Setup{.host = HostRank(static_cast<int>(host))}, now));
    Dance::Connection next = 0;
    for (int step = 0; step < 1000; ++step) {
      const size_t host = random() % count;
      Dance& dance = *dances[host];
      if (dance.step() == Step::kConnect) {
        const auto peer = static_cast<size_t>(dance.peer().value);
        listening[peer].push_back({next, host});
        greetings[next] = dance.OnConnected(next);
        ++next;
      } else if (dance.step() == Step::kAccept && !listening[host].empty()) {
        const size_t which = random() % listening[host].size();
        const Waiting waiting = listening[host][which];
        listening[host].erase(listening[host].begin() + static_cast<long>(which));
        dance.OnAccepted(waiting.connection, all.host(HostRank(static_cast<int>(waiting.from))).address, now);
        dance.OnBytes(waiting.connection, greetings[waiting.connection]);
        EXPECT_TRUE(dance.TakeRefused().empty());
      }
    }
    for (size_t host = 0; host < count; ++host) {
      ASSERT_EQ(dances[host]->step(), Step::kDone) << host;
      for (const auto& [peer, connection] : dances[host]->connections()) {
        EXPECT_EQ(dances[static_cast<size_t>(peer.value)]->connections().at(HostRank(static_cast<int>(host))), connection);
      }
    }
  }
}

}  // namespace
}  // namespace weft::impi
