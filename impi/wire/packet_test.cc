#include "impi/wire/packet.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"

namespace weft::impi {
namespace {

using Header = std::array<uint8_t, Packet::kSize>;

constexpr PacketLimits kLimits{.data_length = 65536, .tag = 32767};

Header FromHex(const std::string& digits) {
  Header header{};
  EXPECT_TRUE(ParseHex(digits, header));
  return header;
}

Header Written(const Packet& packet) {
  Header header;
  packet.Serialize(header);
  return header;
}

Packet Sample() {
  return {.type = PacketType::kData,
          .data_length = 100,
          .source = {HostIdOfIpv4(inet_addr("192.0.2.1")), 4711},
          .destination = {HostIdOfIpv4(inet_addr("192.0.2.2")), -12},
          .source_request = 0x1122334455667788,
          .destination_request = 0x99,
          .message_length = 100,
          .source_rank = 3,
          .tag = 32767,
          .context = 18446744073709551600u,
          .sequence = 5,
          .count = 25,
          .datatype = 6};
}

// The first packet of a message of 80,000 bytes, as LAM/MPI 7.1.4 wrote it on the wire.
TEST(ImpiPacket, IsWhatOthersWrite) {
  const std::string digits =
      "00000001"
      "00010000"
      "0000000000000000000000007f00000200000000000008a3"
      "0000000000000000000000007f00000100000000000008a1"
      "0000000000000001"
      "0000000000000000"
      "0000000000013880"
      "00000000"
      "00000007"
      "0000000000000000"
      "0000000000000003"
      "0000000000000000"
      "0000000000000000"
      "0000000000000000";
  const auto packet = Packet::Parse(FromHex(digits), kLimits);
  ASSERT_TRUE(packet.ok()) << packet.error();
  EXPECT_EQ(*packet, (Packet{.type = PacketType::kDataSync,
                             .data_length = 65536,
                             .source = {HostIdOfIpv4(inet_addr("127.0.0.2")), 2211},
                             .destination = {HostIdOfIpv4(inet_addr("127.0.0.1")), 2209},
                             .source_request = 1,
                             .message_length = 80000,
                             .tag = 7,
                             .sequence = 3}));
  EXPECT_EQ(HexOf(Written(*packet)), digits);
}

TEST(ImpiPacket, EveryFieldComesBack) {
  const auto again = Packet::Parse(Written(Sample()), kLimits);
  ASSERT_TRUE(again.ok()) << again.error();
  EXPECT_EQ(*again, Sample());
}

// LAM gives its FINI a length of 128 without sending so many bytes, and -1 in most fields.
TEST(ImpiPacket, WithoutDataHasNoLengthAndNoTag) {
  const auto fini = Packet::Parse(FromHex("00000007"
                                          "00000080"
                                          "00000000000000000000000000000000ffffffffffffffff"
                                          "00000000000000000000000000000000ffffffffffffffff"
                                          "0000000000000000"
                                          "0000000000000000"
                                          "0000000000000080"
                                          "ffffffff"
                                          "ffffffff"
                                          "0000000000000000"
                                          "000000000000001c"
                                          "ffffffffffffffff"
                                          "0000000000000000"
                                          "0000000000000000"),
                                  kLimits);
  ASSERT_TRUE(fini.ok()) << fini.error();
  EXPECT_EQ(*fini, (Packet{.type = PacketType::kFini, .source = {{}, -1}, .destination = {{}, -1}}));
  for (uint32_t type = static_cast<uint32_t>(PacketType::kProtocolAck); type <= static_cast<uint32_t>(kLastPacketType); ++type) {
    Packet packet = Sample();
    packet.type = static_cast<PacketType>(type);
    const auto again = Packet::Parse(Written(packet), kLimits);
    ASSERT_TRUE(again.ok()) << again.error();
    EXPECT_EQ(again.value().data_length, 0u) << NameOf(packet.type);
    EXPECT_EQ(again.value().destination_request, packet.destination_request);
    EXPECT_EQ(again.value().context, 0u);
  }
}

TEST(ImpiPacket, BothFormsOfAnIpv4AddressAreOneHost) {
  const HostId plain = HostIdOfIpv4(inet_addr("192.0.2.7"));
  HostId mapped = plain, other = plain;
  mapped[10] = mapped[11] = 0xff;
  other[0] = 0x20;
  EXPECT_EQ(Canonical(mapped), plain);
  EXPECT_EQ(Canonical(plain), plain);
  EXPECT_EQ(Canonical(other), other);
  EXPECT_EQ(TextOf(mapped), "192.0.2.7");
  EXPECT_EQ(TextOf(other), "2000::c000:207");
  EXPECT_EQ(TextOf(ProcessName{plain, 4711}), "192.0.2.7/4711");
  Packet packet = Sample();
  packet.source.host[10] = packet.source.host[11] = 0xff;
  EXPECT_EQ(Packet::Parse(Written(packet), kLimits).value().source, Sample().source);
}

TEST(ImpiPacket, WhatIsWrongIsNamed) {
  const auto why = [](const Packet& packet) {
    const auto parsed = Packet::Parse(Written(packet), kLimits);
    return parsed.ok() ? "" : parsed.error();
  };
  Packet packet = Sample();
  packet.data_length = 65537;
  packet.message_length = 65537;
  EXPECT_EQ(why(packet), "pk_len is 65537; the hosts agreed on at most 65536 (IMPI_C_DATALEN)");
  packet = Sample();
  packet.message_length = 99;
  EXPECT_EQ(why(packet), "pk_msglen is 99, less than the 100 bytes of the packet");
  packet = Sample();
  packet.tag = 32768;
  EXPECT_EQ(why(packet), "pk_tag is 32768; the clients agreed on 0 to 32767 (IMPI_C_TAGUB)");
  packet.tag = -1;
  EXPECT_EQ(why(packet), "pk_tag is -1; the clients agreed on 0 to 32767 (IMPI_C_TAGUB)");
  packet = Sample();
  packet.source_rank = -1;
  EXPECT_EQ(why(packet), "pk_lsrank is -1");
  Header header = Written(Sample());
  header[3] = 8;
  EXPECT_EQ(Packet::Parse(header, kLimits).error(), "pk_type is 8; the highest one is 7");
}

}  // namespace
}  // namespace weft::impi
