#include "impi/agent/outlet.h"

#include <gtest/gtest.h>

#include <array>
#include <numeric>
#include <random>

namespace weft::impi {
namespace {

Outlet::Entry Entry(PacketType type, uint64_t number, uint32_t length = 0) {
  CarriedPacket packet({.type = type, .data_length = length, .source_request = number, .message_length = length});
  packet.WriteHeader();
  std::fill(packet.data().begin(), packet.data().end(), static_cast<uint8_t>(number));
  return {std::move(packet)};
}

// The numbers of the packets in the order in which they leave.
std::vector<uint64_t> WriteAll(Outlet& outlet, size_t spans = 1) {
  std::vector<uint64_t> order;
  std::vector<ByteSpan> into(spans);
  while (const size_t count = outlet.Gather(into)) {
    const size_t bytes = std::accumulate(into.begin(), into.begin() + static_cast<long>(count), size_t{0}, [](size_t sum, ByteSpan one) { return sum + one.size(); });
    for (const Outlet::Entry& entry : outlet.Wrote(bytes)) order.push_back(entry.packet.packet.source_request);
  }
  EXPECT_TRUE(outlet.empty());
  return order;
}

TEST(Outlet, AcknowledgementsGoBeforeData) {
  Outlet outlet;
  outlet.Add(Entry(PacketType::kData, 1, 10));
  outlet.Add(Entry(PacketType::kSyncAck, 2));
  outlet.Add(Entry(PacketType::kProtocolAck, 3));
  outlet.Add(Entry(PacketType::kProtocolAck, 4));
  EXPECT_EQ(WriteAll(outlet), (std::vector<uint64_t>{3, 4, 1, 2}));
}

TEST(Outlet, APacketThatHasBegunIsCompletedFirst) {
  Outlet outlet;
  outlet.Add(Entry(PacketType::kData, 1, 10));
  outlet.Add(Entry(PacketType::kData, 2, 10));
  std::array<ByteSpan, 1> into;
  ASSERT_EQ(outlet.Gather(into), 1u);
  EXPECT_TRUE(outlet.Wrote(130).empty());
  outlet.Add(Entry(PacketType::kProtocolAck, 3));
  ASSERT_EQ(outlet.Gather(into), 1u);
  EXPECT_EQ(into[0].size(), 8u);
  EXPECT_EQ(WriteAll(outlet), (std::vector<uint64_t>{1, 3, 2}));
}

TEST(Outlet, ShowsOnlyAsMuchAsMayStandBeforeAnAcknowledgement) {
  Outlet outlet;
  for (uint64_t number = 0; number < 10; ++number) outlet.Add(Entry(PacketType::kData, number, 40000));
  std::array<ByteSpan, 16> into;
  EXPECT_EQ(outlet.Gather(into), 2u);
  outlet.Add(Entry(PacketType::kProtocolAck, 99));
  EXPECT_EQ(outlet.Gather(into), 2u) << "what was shown keeps its place";
  EXPECT_EQ(WriteAll(outlet, 16), (std::vector<uint64_t>{0, 1, 99, 2, 3, 4, 5, 6, 7, 8, 9}));
}

TEST(Outlet, BytesAreTheSameHoweverTheyAreWritten) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    Outlet outlet;
    std::vector<uint8_t> expected, written;
    for (uint64_t number = 0; number < 20; ++number) {
      Outlet::Entry entry = Entry(PacketType::kData, number, random() % 50);
      expected.insert(expected.end(), entry.packet.bytes.get(), entry.packet.bytes.get() + entry.packet.size());
      outlet.Add(std::move(entry));
    }
    std::array<ByteSpan, 3> into;
    size_t complete = 0;
    while (const size_t count = outlet.Gather(std::span(into).first(1 + random() % 3))) {
      size_t left = random() % 400, bytes = 0;
      for (size_t i = 0; i < count && left != 0; ++i) {
        const ByteSpan part = into[i].first(std::min(left, into[i].size()));
        written.insert(written.end(), part.begin(), part.end());
        left -= part.size();
        bytes += part.size();
      }
      complete += outlet.Wrote(bytes).size();
    }
    EXPECT_EQ(written, expected) << "seed " << seed;
    EXPECT_EQ(complete, 20u);
  }
}

TEST(Outlet, GivesBackWhatIsDropped) {
  Outlet outlet;
  outlet.Add(Entry(PacketType::kData, 1));
  outlet.Add(Entry(PacketType::kData, 2));
  outlet.Add(Entry(PacketType::kProtocolAck, 3));
  std::array<ByteSpan, 1> into;
  outlet.Gather(into);
  outlet.Wrote(100);
  EXPECT_EQ(outlet.DropAll().size(), 3u);
  EXPECT_TRUE(outlet.empty());
  outlet.Add(Entry(PacketType::kData, 4));
  EXPECT_EQ(WriteAll(outlet), (std::vector<uint64_t>{4}));
}

}  // namespace
}  // namespace weft::impi
