#include "sim/datagram/header.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft::sim {
namespace {

using transport::SocketAddress;

constexpr uint8_t kExample[] = {
    0x57, 0x55, 0x01, 0x01,  // magic, version, Send with Immediate
    0x20, 0xab, 0xcd, 0x01,  // traffic class, destination QPN
    0x40, 0x12, 0x34, 0x56,  // hop limit, source QPN
    0x11, 0x11, 0x11, 0x11,  // Q_Key
    0x0a, 0x0b, 0x0c, 0x0d,  // immediate
    0x00, 0x01, 0x00, 0x03,  // solicited, 3 bytes
    'a',  'b',  'c',
};

std::vector<uint8_t> Example() { return {std::begin(kExample), std::end(kExample)}; }

TEST(DatagramHeader, ReadsAsDrawn) {
  const auto header = DatagramHeader::Parse(kExample);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->opcode, DatagramHeader::Opcode::kSendImmediate);
  EXPECT_TRUE(header->solicited);
  EXPECT_EQ(header->traffic_class, 0x20);
  EXPECT_EQ(header->destination, 0xabcd01u);
  EXPECT_EQ(header->hop_limit, 0x40);
  EXPECT_EQ(header->source, 0x123456u);
  EXPECT_EQ(header->qkey, 0x11111111u);
  EXPECT_EQ(memcmp(&header->immediate, "\x0a\x0b\x0c\x0d", 4), 0) << "immediate data keeps its bytes";
  EXPECT_EQ(header->length, 3);
}

TEST(DatagramHeader, RoundTrips) {
  const auto header = DatagramHeader::Parse(kExample);
  uint8_t bytes[DatagramHeader::kLength];
  header->SerializeTo(bytes);
  EXPECT_EQ(memcmp(bytes, kExample, sizeof bytes), 0);
}

TEST(DatagramHeader, RefusesWhatIsCutShortOrTooLong) {
  for (size_t length = 0; length < sizeof kExample; ++length) {
    EXPECT_FALSE(DatagramHeader::Parse(ByteSpan(kExample, length))) << length;
  }
  std::vector<uint8_t> longer = Example();
  longer.push_back('d');
  EXPECT_FALSE(DatagramHeader::Parse(longer));
}

TEST(DatagramHeader, RefusesOtherMagicVersionOpcodeAndFlags) {
  for (size_t at : {size_t{0}, size_t{1}, size_t{2}, size_t{20}}) {
    std::vector<uint8_t> other = Example();
    other[at] ^= 0x80;
    EXPECT_FALSE(DatagramHeader::Parse(other)) << at;
  }
  std::vector<uint8_t> other = Example();
  other[3] = 2;
  EXPECT_FALSE(DatagramHeader::Parse(other));
}

TEST(GlobalHeader, OfIpv4IsAnIpv4HeaderInTheLast20Bytes) {
  const auto header = DatagramHeader::Parse(kExample);
  const GlobalHeader grh =
      MakeGlobalHeader(*header, SocketAddress::Parse("192.0.2.1", 1).value(), SocketAddress::Parse("192.0.2.2", 2).value());
  for (size_t i = 0; i < 20; ++i) EXPECT_EQ(grh[i], 0) << i;
  EXPECT_EQ(grh[20], 0x45);
  EXPECT_EQ(grh[21], 0x20);
  EXPECT_EQ(grh[28], 0x40);
  EXPECT_EQ(grh[29], 17);
  EXPECT_EQ(memcmp(&grh[32], "\xc0\x00\x02\x01\xc0\x00\x02\x02", 8), 0);
  uint32_t sum = 0;
  for (size_t i = 20; i < 40; i += 2) sum += static_cast<uint32_t>(grh[i] << 8 | grh[i + 1]);
  sum = (sum & 0xffff) + (sum >> 16);
  EXPECT_EQ(sum, 0xffffu) << "the checksum is right: programs tell the version by it";
}

TEST(GlobalHeader, OfIpv6IsAGrh) {
  const auto header = DatagramHeader::Parse(kExample);
  const GlobalHeader grh =
      MakeGlobalHeader(*header, SocketAddress::Parse("fd00::1", 1).value(), SocketAddress::Parse("fd00::2", 2).value());
  EXPECT_EQ(grh[0], 0x62);
  EXPECT_EQ(grh[1], 0x00);
  EXPECT_EQ(grh[6], 17);
  EXPECT_EQ(grh[7], 0x40);
  EXPECT_EQ(grh[8], 0xfd);
  EXPECT_EQ(grh[23], 1);
  EXPECT_EQ(grh[39], 2);
}

TEST(GlobalHeader, OfUnknownAddressesIsZeros) {
  EXPECT_EQ(MakeGlobalHeader({}, SocketAddress::Parse("192.0.2.1", 1).value(), SocketAddress()), GlobalHeader{});
}

}  // namespace
}  // namespace weft::sim
