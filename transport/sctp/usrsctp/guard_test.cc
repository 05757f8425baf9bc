#include "transport/sctp/usrsctp/guard.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::transport::sctp {
namespace {

using Packet = std::vector<uint8_t>;

Packet Common(uint8_t tag) { return {0x13, 0xb3, 0x13, 0xb3, 0, 0, 0, tag, 0, 0, 0, 0}; }

Packet With(Packet packet, const Packet& more) {
  packet.insert(packet.end(), more.begin(), more.end());
  return packet;
}

// RFC 9260 section 3.3.2, with one parameter: supported address types, IPv4.
Packet Init() {
  return With(Common(0), {1, 0, 0, 28, 1, 2, 3, 4, 0, 1, 0, 0, 0, 10, 0, 10, 5, 6, 7, 8, 0, 12, 0, 6, 0, 5, 0, 0});
}

TEST(Guard, AnInitMayEnter) {
  EXPECT_TRUE(MayEnter(Init(), false));
  EXPECT_TRUE(MayEnter(Init(), true));
}

TEST(Guard, AnInitWithoutItsLastPaddingMayEnter) {
  Packet packet = Init();
  packet[15] = 26;
  EXPECT_TRUE(MayEnter(packet, false));
  packet.pop_back();
  packet.pop_back();
  EXPECT_TRUE(MayEnter(packet, false));
}

TEST(Guard, AParameterWithoutLengthOrBeyondItsChunkMayNot) {
  for (const uint8_t length : {0, 1, 3, 9, 200}) {
    Packet packet = Init();
    packet[35] = length;
    EXPECT_FALSE(MayEnter(packet, false)) << int{length};
  }
}

TEST(Guard, AnInitWithAValueThatIsNotAllowedMayNot) {
  for (const auto& [at, count] : {std::pair{16, 4}, {20, 4}, {24, 2}, {26, 2}}) {
    Packet packet = Init();
    for (int i = 0; i < count; ++i) packet[static_cast<size_t>(at + i)] = 0;
    EXPECT_FALSE(MayEnter(packet, false)) << at;
  }
}

TEST(Guard, AnInitIsAloneAndHasNoTag) {
  const Packet init = Init();
  EXPECT_FALSE(MayEnter(With(init, {11, 0, 0, 4}), false));
  EXPECT_FALSE(MayEnter(With(With(Common(9), {11, 0, 0, 4}), Packet(init.begin() + 12, init.end())), false));
  Packet tagged = Init();
  tagged[7] = 1;
  EXPECT_FALSE(MayEnter(tagged, false));
}

TEST(Guard, OnlyAnInitHasNoTag) {
  EXPECT_TRUE(MayEnter(With(Common(1), {11, 0, 0, 4}), true));
  EXPECT_FALSE(MayEnter(With(Common(0), {11, 0, 0, 4}), true));
}

TEST(Guard, ARestartWithParametersOfAuthMayNot) {
  Packet packet = Init();
  packet[32] = 0x80, packet[33] = 0x04;
  EXPECT_TRUE(MayEnter(packet, false));
  EXPECT_FALSE(MayEnter(packet, true));
}

TEST(Guard, ChunksThatDoNotFitMayNot) {
  for (const uint8_t length : {0, 3, 5})
    EXPECT_FALSE(MayEnter(With(Common(1), {11, 0, 0, length}), true)) << int{length};
  EXPECT_FALSE(MayEnter(With(Common(1), {11, 0, 0, 4, 11, 0}), true));
  EXPECT_FALSE(MayEnter(With(Common(1), {9, 0, 0, 8, 0, 1, 0, 0}), true)) << "a cause without length";
}

TEST(Guard, EveryBeginningOfAPacketIsLookedAtWithinItsBounds) {
  const Packet packet = With(Common(1), {10, 0, 0, 7, 1, 2, 3, 0, 9, 0, 0, 12, 0, 1, 0, 8, 1, 2, 3, 4});
  EXPECT_TRUE(MayEnter(packet, true));
  for (size_t length = 0; length < packet.size(); ++length) {
    const Packet cut(packet.begin(),
                     packet.begin() + static_cast<ptrdiff_t>(length));  // of its own, so that reading on is noticed
    MayEnter(cut, true);
  }
}

TEST(Guard, AnInitSaysItsAdaptationIndication) {
  EXPECT_EQ(AsInit(With(Common(7), {10, 0, 0, 4})), std::nullopt);
  ASSERT_TRUE(AsInit(Init()).has_value());
  EXPECT_EQ(AsInit(Init())->adaptation, std::nullopt);
  EXPECT_EQ(AsInit(Init())->tag, 0x01020304u);
  Packet packet = With(Init(), {0xc0, 6, 0, 8, 0, 0, 0, 1});
  packet[15] = 36;
  ASSERT_TRUE(MayEnter(packet, true));
  EXPECT_EQ(AsInit(packet)->adaptation, 1u);
  packet[43] = 7;  // of another length it is none
  packet[15] = 35;
  EXPECT_EQ(AsInit(packet)->adaptation, std::nullopt);
}

}  // namespace
}  // namespace weft::transport::sctp
