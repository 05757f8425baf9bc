#include "transport/sctp/usrsctp/ports.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace weft::transport::sctp {
namespace {

using std::chrono::seconds;

constexpr uint16_t kPort = 7, kOther = 8, kPeersPort = 9;

SocketAddress At(const char* host) { return *SocketAddress::Parse(host, 0); }
Time After(seconds time) { return Time{} + time; }

TEST(Ports, OneIsThereAsLongAsASocketHasItAndHoldsWhatKeepsItFromOthers) {
  Ports ports;
  auto held = std::make_shared<int>();
  const std::weak_ptr<int> watched = held;
  ports.Add(kPort, {At("10.0.0.1")}, std::move(held));
  ports.Share(kPort);
  ports.Forget(kPort);
  EXPECT_TRUE(ports.contains(kPort));
  EXPECT_FALSE(ports.contains(kOther));
  EXPECT_FALSE(watched.expired());
  ports.Forget(kPort);
  EXPECT_FALSE(ports.contains(kPort));
  EXPECT_TRUE(watched.expired());
}

TEST(Ports, PacketsMayComeFromTheAddressesOfAllItsSocketsAndFromAnyIfOneHasAny) {
  Ports ports;
  EXPECT_EQ(ports.AddressesOf(kPort), nullptr);
  ports.Add(kPort, {At("10.0.0.1")}, nullptr);
  ports.Add(kPort, {At("10.0.0.2")}, nullptr);
  EXPECT_EQ(ports.AddressesOf(kPort)->size(), 2U);
  ports.Add(kPort, {}, nullptr);
  EXPECT_TRUE(ports.AddressesOf(kPort)->empty());
}

TEST(Ports, ThatOfAnAssociationThatWasClosedInOrderStaysForAWhile) {
  Ports ports;
  ports.Add(kPort, {At("10.0.0.1")}, nullptr);
  ports.Leave(kPort, {}, After(seconds(100)));
  EXPECT_TRUE(ports.any_leaves());
  ports.Expire(After(seconds(159)));
  EXPECT_TRUE(ports.contains(kPort));
  ports.Expire(After(seconds(160)));
  EXPECT_FALSE(ports.contains(kPort));
  EXPECT_FALSE(ports.any_leaves());
}

TEST(Ports, WhoComesAfterThoseThatLeftHasOtherAddressesAndStays) {
  Ports ports;
  ports.Add(kPort, {At("10.0.0.1")}, nullptr);
  ports.Leave(kPort, {}, After(seconds(0)));
  ports.Add(kPort, {At("10.0.0.2")}, nullptr);
  ASSERT_EQ(ports.AddressesOf(kPort)->size(), 1U);
  EXPECT_TRUE(ports.AddressesOf(kPort)->front().SameHost(At("10.0.0.2")));
  ports.Expire(After(seconds(60)));
  EXPECT_TRUE(ports.contains(kPort));
}

TEST(Ports, AThousandThatLeftAtOnceAreNotAllKept) {
  Ports ports;
  for (uint16_t port = 1; port <= 1000; ++port) {
    ports.Add(port, {}, nullptr);
    ports.Leave(port, {}, After(seconds(0)));
  }
  EXPECT_FALSE(ports.contains(1000 - Ports::kMostLeavers));
  EXPECT_TRUE(ports.contains(1000 - Ports::kMostLeavers + 1));
  EXPECT_TRUE(ports.contains(1000));
  ports.Expire(After(seconds(60)));
  EXPECT_FALSE(ports.contains(1000));
}

TEST(Ports, TheLastWordOfAnyOfAPeersAddressesIsEnough) {
  Ports ports;
  const std::vector<PeerKey> peer = {PeerKey(At("10.0.1.1"), kPeersPort, kPort), PeerKey(At("10.0.2.1"), kPeersPort, kPort)};
  ports.Add(kPort, {}, nullptr);
  ports.Leave(kPort, peer, After(seconds(0)));
  ports.Add(kOther, {}, nullptr);
  ports.Leave(kOther, {}, After(seconds(0)));
  EXPECT_TRUE(ports.awaits_last_word());
  ports.NoteLastWord(PeerKey(At("10.0.1.1"), kPeersPort, kOther));
  EXPECT_TRUE(ports.awaits_last_word());
  ports.NoteLastWord(peer[1]);
  EXPECT_FALSE(ports.awaits_last_word());
  EXPECT_TRUE(ports.contains(kPort)) << "a SHUTDOWN ACK may come once more";
}

TEST(Ports, WhatNobodyHasIsForgottenAndLeftInVain) {
  Ports ports;
  ports.Forget(kPort);
  ports.Leave(kPort, {}, After(seconds(0)));
  EXPECT_FALSE(ports.contains(kPort));
  EXPECT_FALSE(ports.any_leaves());
}

}  // namespace
}  // namespace weft::transport::sctp
