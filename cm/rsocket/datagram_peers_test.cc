#include "cm/rsocket/datagram_peers.h"

#include <gtest/gtest.h>

namespace weft::rsocket {
namespace {

std::shared_ptr<DatagramPeer> Numbered(size_t number) {
  auto peer = std::make_shared<DatagramPeer>();
  peer->queue_pair = static_cast<uint32_t>(number);
  return peer;
}

void Fill(DatagramPeers& peers, size_t from, size_t to, const std::string& keep = "") {
  for (size_t i = from; i < to; ++i) peers.Add(std::to_string(i), Numbered(i), keep);
}

TEST(DatagramPeersTest, OfTooManyTheLongestUnusedGoes) {
  DatagramPeers peers;
  Fill(peers, 0, DatagramPeers::kMost);
  EXPECT_NE(peers.Find("0"), nullptr);
  Fill(peers, DatagramPeers::kMost, DatagramPeers::kMost + 1);
  EXPECT_EQ(peers.size(), DatagramPeers::kMost);
  EXPECT_EQ(peers.Find("1"), nullptr);
  EXPECT_NE(peers.Find("0"), nullptr);
  EXPECT_EQ(peers.Find(std::to_string(DatagramPeers::kMost))->queue_pair, DatagramPeers::kMost);
}

TEST(DatagramPeersTest, WhoeverHoldsOneKeepsItAlive) {
  DatagramPeers peers;
  Fill(peers, 0, 1);
  const auto held = peers.Find("0");
  Fill(peers, 1, 5000);
  EXPECT_EQ(peers.Find("0"), nullptr);
  held->queue_pair = 7;  // ASan looks
  EXPECT_EQ(held.use_count(), 1);
}

TEST(DatagramPeersTest, ThePeerOfAConnectedSocketStays) {
  DatagramPeers peers;
  Fill(peers, 0, 20'000, "0");
  EXPECT_NE(peers.Find("0"), nullptr);
  EXPECT_EQ(peers.size(), DatagramPeers::kMost);
}

}  // namespace
}  // namespace weft::rsocket
