#include "cm/rsocket/datagram_wire.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <vector>

namespace weft::rsocket {
namespace {

sockaddr_storage Address(const char* text, uint16_t port) {
  sockaddr_storage address{};
  auto& in4 = reinterpret_cast<sockaddr_in&>(address);
  auto& in6 = reinterpret_cast<sockaddr_in6&>(address);
  if (inet_pton(AF_INET, text, &in4.sin_addr) == 1) {
    address.ss_family = AF_INET;
    in4.sin_port = htons(port);
  } else {
    EXPECT_EQ(inet_pton(AF_INET6, text, &in6.sin6_addr), 1);
    address.ss_family = AF_INET6;
    in6.sin6_port = htons(port);
  }
  return address;
}

TEST(DatagramHeader, OfBothFamilies) {
  std::array<uint8_t, DatagramHeader::kMostLength> bytes{};
  ASSERT_EQ((DatagramHeader{Address("192.0.2.7", 7471)}.Serialize(bytes)), 8u);
  const uint8_t expected[] = {4, 8, 0x1d, 0x2f, 192, 0, 2, 7};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
  size_t length = 0;
  auto parsed = DatagramHeader::Parse(bytes, &length);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(length, 8u);
  const sockaddr_storage four = Address("192.0.2.7", 7471);
  EXPECT_EQ(std::memcmp(&parsed->from, &four, sizeof four), 0);

  ASSERT_EQ((DatagramHeader{Address("fd00::7", 7471)}.Serialize(bytes)), 24u);
  parsed = DatagramHeader::Parse(bytes, &length);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(length, 24u);
  const sockaddr_storage six = Address("fd00::7", 7471);
  EXPECT_EQ(std::memcmp(&parsed->from, &six, sizeof six), 0);
}

TEST(DatagramHeader, RefusesWhatIsCutShortOrOfAnotherLength) {
  for (const char* address : {"192.0.2.7", "fd00::7"}) {
    std::array<uint8_t, DatagramHeader::kMostLength> bytes{};
    const size_t whole = DatagramHeader{Address(address, 1)}.Serialize(bytes);
    size_t length = 0;
    for (size_t part = 0; part < whole; ++part) EXPECT_FALSE(DatagramHeader::Parse(Bytes(bytes).first(part), &length));
    for (int at : {0, 1}) {
      auto wrong = bytes;
      wrong[static_cast<size_t>(at)] ^= 2;
      EXPECT_FALSE(DatagramHeader::Parse(wrong, &length));
    }
  }
}

TEST(LookupHeader, OfBothFamilies) {
  std::array<uint8_t, LookupHeader::kMostLength> bytes{};
  ASSERT_EQ((LookupHeader{LookupHeader::Op::kControl, 0x123456, Address("192.0.2.7", 0)}.Serialize(bytes)), 16u);
  const uint8_t expected[] = {0x55, 0x55, 0x55, 0x55, 4, 7, 16, 0, 0, 0x12, 0x34, 0x56, 192, 0, 2, 7};
  EXPECT_EQ(std::memcmp(bytes.data(), expected, sizeof expected), 0);
  ASSERT_EQ((LookupHeader{LookupHeader::Op::kData, 0x123456, Address("fd00::7", 0)}.Serialize(bytes)), 28u);
  size_t length = 0;
  const auto parsed = LookupHeader::Parse(bytes, &length);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(length, 28u);
  EXPECT_EQ(parsed->op, LookupHeader::Op::kData);
  EXPECT_EQ(parsed->queue_pair, 0x123456u);
}

TEST(LookupHeader, RefusesWhatIsCutShortOrWrong) {
  for (const char* address : {"192.0.2.7", "fd00::7"}) {
    std::array<uint8_t, LookupHeader::kMostLength> bytes{};
    const size_t whole = LookupHeader{LookupHeader::Op::kData, 7, Address(address, 0)}.Serialize(bytes);
    size_t length = 0;
    for (size_t part = 0; part < whole; ++part) EXPECT_FALSE(LookupHeader::Parse(Bytes(bytes).first(part), &length));
    for (size_t at : {0, 4, 5, 6, 8}) {  // tag, version, op, length, a QPN of more than 24 bits
      auto wrong = bytes;
      wrong[at] ^= 2;
      EXPECT_FALSE(LookupHeader::Parse(wrong, &length)) << at;
    }
  }
}

}  // namespace
}  // namespace weft::rsocket
