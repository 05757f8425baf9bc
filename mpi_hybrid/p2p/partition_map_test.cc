#include "mpi_hybrid/p2p/partition_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <random>
#include <string>
#include <vector>

namespace weft::mpi {
namespace {

using Bytes = std::array<uint8_t, PartitionAnnouncement::kLength>;

TEST(PartitionAnnouncement, IsReadAsItWasWritten) {
  Bytes bytes;
  PartitionAnnouncement{0x10203, 0x3fff, 0x1112131415}.SerializeTo(bytes);
  EXPECT_EQ(bytes, (Bytes{3, 2, 1, 0, 0xff, 0x3f, 0, 0, 0x15, 0x14, 0x13, 0x12, 0x11, 0, 0, 0}));
  const auto parsed = PartitionAnnouncement::Parse(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->partitions, 0x10203u);
  EXPECT_EQ(parsed->stream, 0x3fffu);
  EXPECT_EQ(parsed->total(), 0x10203u * 0x1112131415u);
}

TEST(PartitionAnnouncement, MoreThanThereCanBeIsRefused) {
  const auto parses = [](uint32_t partitions, uint32_t stream, uint64_t bytes) {
    Bytes text;
    PartitionAnnouncement{partitions, stream, bytes}.SerializeTo(text);
    return PartitionAnnouncement::Parse(text).has_value();
  };
  EXPECT_TRUE(parses(1 << 20, 0, uint64_t{1} << 42));
  EXPECT_FALSE(parses(1 << 20, 0, (uint64_t{1} << 42) + 1)) << "bytes in all";
  EXPECT_FALSE(parses((1 << 20) + 1, 0, 1));
  EXPECT_FALSE(parses(1, 1 << 14, 1));
  EXPECT_FALSE(parses(1, 0, UINT64_MAX));
  EXPECT_FALSE(parses(0, 0, UINT64_MAX));
  EXPECT_TRUE(parses(0, 0, 0));
}

// Byte by byte what the map counts.
TEST(PartitionMap, APartitionIsCompleteWithTheLastOfItsBytes) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const auto below = [&](size_t n) { return random() % n; };
  for (int round = 0; round < 300; ++round) {
    const size_t sent = below(12), received = below(12);
    const uint64_t sent_bytes = below(7), received_bytes = below(7);
    SCOPED_TRACE(std::to_string(sent) + " of " + std::to_string(sent_bytes) + " to " + std::to_string(received) + " of " +
                 std::to_string(received_bytes));
    PartitionMap map(sent, sent_bytes, received, received_bytes);
    std::vector<size_t> order(sent);
    std::iota(order.begin(), order.end(), size_t{0});
    for (int start = 0; start < 2; ++start) {
      std::shuffle(order.begin(), order.end(), random);
      map.Restart();
      std::vector<bool> here(sent);
      for (size_t came = 0; came <= sent; ++came) {
        for (size_t r = 0; r < received; ++r) {
          bool complete = true;
          for (uint64_t byte = r * received_bytes; byte < (r + 1) * received_bytes; ++byte) {
            if (sent_bytes != 0 && byte < sent * sent_bytes && !here[byte / sent_bytes]) complete = false;
          }
          // Of nothing: with its own where both divide alike, else when everything came.
          if (sent == received && sent_bytes == 0 && received_bytes == 0) complete = here[r];
          else if (sent_bytes == 0 || received_bytes == 0) complete = came == sent;
          ASSERT_EQ(map.IsComplete(r), complete) << "partition " << r << " after " << came;
        }
        if (came == sent) break;
        here[order[came]] = true;
        map.Arrived(order[came]);
      }
    }
  }
}

}  // namespace
}  // namespace weft::mpi
