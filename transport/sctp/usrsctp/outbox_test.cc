#include "transport/sctp/usrsctp/outbox.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"

namespace weft::transport::sctp {
namespace {

using Bytes = std::vector<uint8_t>;

// Keeps what is sent, as far as it is told to.
class Socket final : public DatagramSocket {
 public:
  size_t Send(std::span<const OutgoingDatagram> datagrams, int* error) override {
    ++calls;
    for (size_t i = 0; i < datagrams.size(); ++i) {
      if (takes == 0) return *error = ENETUNREACH, i;
      --takes;
      const auto* at = static_cast<const uint8_t*>(datagrams[i].pieces[0].iov_base);
      sent.emplace_back(at, at + datagrams[i].pieces[0].iov_len);
    }
    return datagrams.size();
  }
  size_t Receive(std::span<IncomingDatagram>) override { return 0; }
  SocketAddress LocalAddress() const override { return {}; }

  size_t takes = SIZE_MAX;
  int calls = 0;
  std::vector<Bytes> sent;
};

class OutboxTest : public ::testing::Test, public Outbox::Observer {
 protected:
  // A packet with one chunk of that type whose bytes are all `fill`; `tag` tells associations apart.
  void Add(uint8_t type, size_t chunk, uint8_t fill, uint8_t tag = 1, const char* to = "10.0.0.2") {
    constexpr size_t kInFront = 28;
    Bytes packet(12 + chunk, fill);
    std::fill(packet.begin(), packet.begin() + 8, tag);
    packet[12] = type;
    packet[14] = static_cast<uint8_t>(chunk >> 8);
    packet[15] = static_cast<uint8_t>(chunk);
    uint8_t* const room = outbox_.Room(kInFront + packet.size());
    ASSERT_NE(room, nullptr);
    std::memcpy(room + kInFront, packet.data(), packet.size());
    outbox_.Add(*SocketAddress::Parse("10.0.0.1", 0), *SocketAddress::Parse(to, 9899), socket_, {room + kInFront, packet.size()});
  }
  std::vector<size_t> Lengths() {
    outbox_.Flush();
    std::vector<size_t> lengths;
    for (Bytes packet : socket_.sent) {
      lengths.push_back(packet.size());
      const uint32_t crc = LoadCrc32c(packet.data() + 8);
      std::memset(packet.data() + 8, 0, 4);
      EXPECT_EQ(crc, Crc32c(packet));
    }
    return lengths;
  }
  void OnPacket(const SocketAddress&, const SocketAddress&, const DatagramSocket&, std::span<const uint8_t>) override {}
  void OnSent(size_t packets) override { sent_ += packets; }
  void OnNotSent(const SocketAddress& to, int error) override { not_sent_.push_back(to.host() + " " + std::to_string(error)); }

  size_t sent_ = 0;
  std::vector<std::string> not_sent_;
  Socket socket_;
  Outbox outbox_{*this};
};

TEST_F(OutboxTest, SmallPacketsOfDataOfOneAssociationBecomeOne) {
  Add(3, 16, 0xaa);  // SACK
  Add(0, 20, 0xbb);
  Add(0, 40, 0xcc);
  EXPECT_EQ(Lengths(), std::vector<size_t>{12 + 16 + 20 + 40});
  const Bytes& packet = socket_.sent[0];
  EXPECT_EQ(packet[12], 3);
  EXPECT_EQ(packet[12 + 16], 0);
  EXPECT_EQ(packet[12 + 16 + 1], 0xbb);
  EXPECT_EQ(packet[12 + 16 + 20], 0);
  EXPECT_EQ(packet.back(), 0xcc);
}

TEST_F(OutboxTest, OthersStayApart) {
  Add(0, 20, 1, /*tag=*/1);
  Add(0, 20, 1, /*tag=*/2);  // another association
  Add(0, 20, 1, 2, "10.0.0.3");  // another path
  Add(3, 16, 1, 2, "10.0.0.3");  // control does not stand behind data
  Add(1, 20, 1, 3);  // INIT
  Add(0, 20, 1, 3);
  EXPECT_EQ(Lengths(), (std::vector<size_t>{32, 32, 32, 32, 32, 28})) << "path by path";
}

TEST_F(OutboxTest, NothingBecomesLongerThanEveryPathTakes) {
  for (int i = 0; i < 3; ++i) Add(0, 600, 1);
  EXPECT_EQ(Lengths(), (std::vector<size_t>{1212, 612}));
  outbox_.LimitJoined(100);
  socket_.sent.clear();
  for (int i = 0; i < 3; ++i) Add(0, 40, 1);
  Add(0, 2000, 1);
  EXPECT_EQ(Lengths(), (std::vector<size_t>{92, 52, 2012}));
}

TEST_F(OutboxTest, OfSacksOfOneAssociationThatWaitTheLastGoes) {
  Add(3, 16, 1);
  Add(3, 20, 2);
  Add(3, 24, 3);
  Add(3, 16, 4, /*tag=*/2);
  Add(3, 16, 5, 2, "10.0.0.3");
  EXPECT_EQ(Lengths(), (std::vector<size_t>{36, 28, 28}));
  EXPECT_EQ(socket_.sent[0].back(), 3);
  socket_.sent.clear();
  Add(3, 16, 6);
  EXPECT_EQ(Lengths(), std::vector<size_t>{28}) << "what went is no more in the way";
}

TEST_F(OutboxTest, DataThatStandsBehindASackGoes) {
  Add(3, 16, 1);
  Add(0, 20, 2);
  Add(3, 20, 3);
  EXPECT_EQ(Lengths(), (std::vector<size_t>{48, 32}));
}

TEST_F(OutboxTest, PacketsOfPathsThatTakeTurnsGoPathByPath) {
  for (uint8_t i = 0; i < 6; ++i) Add(0, 1300, i, 1, i % 2 == 0 ? "10.0.0.2" : "10.0.0.3");
  Lengths();
  std::string order;
  for (const Bytes& packet : socket_.sent) order += std::to_string(packet.back());
  EXPECT_EQ(order, "024135");
}

TEST_F(OutboxTest, WhatIsNotTakenIsLostAndTheRestGoesOn) {
  Add(0, 20, 1, 1, "10.0.0.2");
  Add(0, 20, 1, 1, "10.0.0.3");
  Add(0, 20, 1, 1, "10.0.0.4");
  socket_.takes = 1;
  outbox_.Flush();
  EXPECT_EQ(sent_, 1u);
  EXPECT_EQ(not_sent_, (std::vector<std::string>{"10.0.0.3 101", "10.0.0.4 101"}));
  EXPECT_TRUE(outbox_.empty());
}

TEST_F(OutboxTest, ManyPacketsTakeFewSystemCalls) {
  for (int i = 0; i < 120; ++i) Add(0, 1300, 1);
  EXPECT_EQ(Lengths().size(), 120u);
  EXPECT_EQ(socket_.calls, 2);
  EXPECT_EQ(outbox_.Room(600 * 1024), nullptr);
}

}  // namespace
}  // namespace weft::transport::sctp
