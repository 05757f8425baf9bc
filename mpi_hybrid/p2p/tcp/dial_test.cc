#include "mpi_hybrid/p2p/tcp/dial.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Next = Dial::Next;
using End = Dial::End;

constexpr Dial::Clock::time_point kStart{};

Dial Of(const char* published) {
  auto dial = Dial::Make(published);
  EXPECT_TRUE(dial.has_value()) << published;
  return *dial;
}

TEST(DialTest, AddressesAreTriedInOrderAndNobodyAtAnyIsADeath) {
  Dial dial = Of("172.17.0.1:7000,10.0.0.5:7000,[::1]:7000");
  for (const char* expected : {"172.17.0.1:7000", "10.0.0.5:7000", "[::1]:7000"}) {
    EXPECT_EQ(dial.address().ToString(), expected);
    dial.Begin(kStart);
    const Next next = dial.Failed(kStart, End::kNobody);
    EXPECT_EQ(next, std::string(expected) == "[::1]:7000" ? Next::kDead : Next::kTry);
  }
}

TEST(DialTest, OneOfSeveralAddressesHasTenSecondsAndTheLastTheKernelsTime) {
  Dial dial = Of("172.17.0.1:7000,10.0.0.5:7000");
  EXPECT_EQ(dial.Begin(kStart), kStart + seconds(10));
  EXPECT_EQ(dial.Failed(kStart + seconds(10), End::kNobody), Next::kTry);
  EXPECT_EQ(dial.Begin(kStart + seconds(10)), std::nullopt);
}

// Its kernel accepts at the first address; at the second our own host refuses, since it has that address, too (a container engine's bridge).
TEST(DialTest, ASilentAddressIsWaitedForWithoutLimitAndNobodyAtAnotherIsNoDeath) {
  Dial dial = Of("10.0.0.5:7000,172.17.0.1:7000");
  auto now = *dial.Begin(kStart);
  EXPECT_EQ(dial.Failed(now, End::kSilent), Next::kTry);
  EXPECT_EQ(dial.address().ToString(), "172.17.0.1:7000");
  dial.Begin(now);
  ASSERT_EQ(dial.Failed(now, End::kNobody), Next::kTry);
  EXPECT_EQ(dial.address().ToString(), "10.0.0.5:7000");
  EXPECT_EQ(dial.Begin(now), std::nullopt);
  // An hour later its host is gone: all are asked once more before that is believed.
  now += std::chrono::hours(1);
  for (const char* expected : {"10.0.0.5:7000", "172.17.0.1:7000"}) {
    ASSERT_EQ(dial.Failed(now, End::kNobody), Next::kTry);
    EXPECT_EQ(dial.address().ToString(), expected);
    dial.Begin(now);
  }
  EXPECT_EQ(dial.Failed(now, End::kNobody), Next::kDead);
}

TEST(DialTest, SeveralSilentAddressesTakeTurnsEachTimeForLonger) {
  Dial dial = Of("10.0.0.5:7000,10.0.0.6:7000,10.0.0.7:7000");
  auto now = kStart;
  for (const int limit : {10, 20, 40, 80, 160, 320, 600, 600}) {
    for (const char* expected : {"10.0.0.5:7000", "10.0.0.7:7000"}) {
      ASSERT_EQ(dial.address().ToString(), expected);
      ASSERT_EQ(dial.Begin(now), now + seconds(limit));
      now += seconds(limit);
      ASSERT_EQ(dial.Failed(now, End::kSilent), Next::kTry);
      if (dial.address().ToString() != "10.0.0.6:7000") continue;
      dial.Begin(now);
      ASSERT_EQ(dial.Failed(now, End::kNobody), Next::kTry);
    }
  }
  // The patience with who closes begins now.
  for (int attempt = 0; attempt < 2; ++attempt) {
    dial.Begin(now);
    EXPECT_EQ(dial.Failed(now, End::kClosed), Next::kTry);
  }
}

TEST(DialTest, WhoIsRefusedForWantOfRoomTriesAgainForHalfAMinute) {
  Dial dial = Of("127.0.0.1:7000");
  auto now = kStart;
  int attempts = 0;
  for (;; ++attempts) {
    dial.Begin(now);
    const Next next = dial.Failed(now, End::kClosed);
    ASSERT_NE(next, Next::kDead);
    if (next == Next::kUnreachable) break;
    EXPECT_GT(dial.retry_at(), now);
    EXPECT_LE(dial.retry_at(), now + seconds(1));
    now = dial.retry_at();
  }
  EXPECT_GE(now, kStart + Dial::kPatience);
  EXPECT_GT(attempts, 30);
  EXPECT_LT(attempts, 100);
}

// A rank that computes looks seldom, or not for a minute: it is not the peer's fault, and the first look says little.
TEST(DialTest, PatienceIsNotSpentWhileNobodyLooks) {
  Dial dial = Of("127.0.0.1:7000");
  auto now = kStart;
  for (int look = 0; look < 15; ++look) {
    dial.Begin(now);
    now += seconds(60);
    ASSERT_EQ(dial.Failed(now, End::kClosed), Next::kTry) << "look " << look;
  }
}

TEST(DialTest, WhoIsBusyIsAskedAgainForAsLongAsItSaysSo) {
  Dial dial = Of("172.17.0.1:7000,10.0.0.5:7000");
  auto now = kStart;
  dial.Begin(now);
  ASSERT_EQ(dial.Failed(now, End::kNobody), Next::kTry);
  for (int attempt = 0; attempt < 100; ++attempt) {
    ASSERT_EQ(dial.address().ToString(), "10.0.0.5:7000");
    dial.Begin(now);
    dial.Busy(now);
    ASSERT_EQ(dial.retry_at(), now + seconds(1));
    now = dial.retry_at();
  }
  dial.Begin(now);
  EXPECT_EQ(dial.Failed(now, End::kClosed), Next::kTry) << "patience begins anew";
}

TEST(DialTest, PatienceForRoomIsNotSpentWhileNobodyLooks) {
  Dial dial = Of("127.0.0.1:7000");
  auto now = kStart;
  for (int look = 0; look < 15; ++look, now += seconds(60)) ASSERT_EQ(dial.NoRoom(now), Next::kTry) << "look " << look;
  dial.Begin(now);
  for (int look = 0; look < 15; ++look, now += seconds(60)) ASSERT_EQ(dial.NoRoom(now), Next::kTry) << "look " << look;
}

TEST(DialTest, WhoIsFoundDeadAfterARefusalIsDeadAtOnce) {
  Dial dial = Of("127.0.0.1:7000");
  dial.Begin(kStart);
  EXPECT_EQ(dial.Failed(kStart, End::kClosed), Next::kTry);
  dial.Begin(kStart + milliseconds(10));
  EXPECT_EQ(dial.Failed(kStart + milliseconds(10), End::kNobody), Next::kDead);
}

TEST(DialTest, WhereOthersAreInItsPlaceItIsDead) {
  Dial dial = Of("172.17.0.1:7000,10.0.0.5:7000");
  dial.Begin(kStart);
  EXPECT_EQ(dial.Failed(kStart, End::kAnother), Next::kTry);
  dial.Begin(kStart);
  EXPECT_EQ(dial.Failed(kStart, End::kClosed), Next::kTry);
  for (const End end : {End::kNobody, End::kAnother}) {
    dial.Begin(kStart + milliseconds(10));
    EXPECT_EQ(dial.Failed(kStart + milliseconds(10), end), end == End::kNobody ? Next::kTry : Next::kDead);
  }
}

TEST(DialTest, WantOfRoomHereIsWaitedForAndIsNeverADeath) {
  Dial dial = Of("127.0.0.1:7000");
  auto now = kStart;
  Next next;
  while ((next = dial.NoRoom(now)) == Next::kTry) now = dial.retry_at();
  EXPECT_EQ(next, Next::kUnreachable);
  EXPECT_EQ(now, kStart + Dial::kPatience);
  dial.Begin(now);
  EXPECT_EQ(dial.NoRoom(now), Next::kTry);  // patience begins anew after an attempt
}

TEST(DialTest, WhatIsNoAddressIsLeftOut) {
  for (const char* wrong :
       {"", ",", "127.0.0.1", "127.0.0.1:", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:80x", "name:80", ":80"}) {
    EXPECT_FALSE(Dial::Make(wrong).has_value()) << wrong;
  }
  EXPECT_EQ(Of("name:80,127.0.0.1:81").address().ToString(), "127.0.0.1:81");
}

TEST(DialTest, AsManyAddressesArePublishedAsFit) {
  std::vector<transport::SocketAddress> addresses;
  for (const char* host : {"10.0.0.1", "fe80::1234:5678:9abc:def0", "10.0.0.2"})
    addresses.push_back(*transport::SocketAddress::Parse(host, 7000));
  EXPECT_EQ(JoinAddresses(addresses, 1023), "10.0.0.1:7000,[fe80::1234:5678:9abc:def0]:7000,10.0.0.2:7000");
  EXPECT_EQ(JoinAddresses(addresses, 30), "10.0.0.1:7000,10.0.0.2:7000");
  EXPECT_EQ(JoinAddresses(addresses, 5), "10.0.0.1:7000");
}

}  // namespace
}  // namespace weft::mpi
