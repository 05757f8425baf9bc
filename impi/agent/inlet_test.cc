#include "impi/agent/inlet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/hex.h"

namespace weft::impi {
namespace {

constexpr PacketLimits kLimits{.data_length = 100, .tag = 32767};

std::vector<uint8_t> Stream(const std::vector<uint32_t>& lengths) {
  std::vector<uint8_t> stream;
  for (const uint32_t length : lengths) {
    CarriedPacket packet({.type = PacketType::kData, .data_length = length, .message_length = length});
    packet.WriteHeader();
    std::fill(packet.data().begin(), packet.data().end(), static_cast<uint8_t>(length));
    stream.insert(stream.end(), packet.bytes.get(), packet.bytes.get() + packet.size());
  }
  return stream;
}

TEST(Inlet, PacketsAreTheSameWhereverTheStreamIsCut) {
  const std::vector<uint32_t> lengths{0, 7, 100, 0, 1};
  const std::vector<uint8_t> stream = Stream(lengths);
  for (size_t step = 1; step <= stream.size(); ++step) {
    Inlet inlet(kLimits);
    std::vector<uint32_t> came;
    for (size_t at = 0; at < stream.size(); at += step) {
      ByteSpan bytes = ByteSpan(stream).subspan(at, std::min(step, stream.size() - at));
      for (;;) {
        auto taken = inlet.Take(bytes);
        ASSERT_TRUE(taken.ok()) << taken.error();
        if (!*taken) break;
        CarriedPacket& packet = **taken;
        came.push_back(packet.packet.data_length);
        for (const uint8_t byte : packet.data()) ASSERT_EQ(byte, packet.packet.data_length);
      }
      EXPECT_TRUE(bytes.empty());
    }
    ASSERT_EQ(came, lengths) << step;
  }
}

TEST(Inlet, TheMemoryOfLongPacketsIsUsedAgain) {
  constexpr size_t kLongest = Packet::kSize + 100;
  PacketStore store(kLongest, 2 * kLongest + 1);
  Inlet inlet(kLimits, &store);
  const auto take = [&](uint32_t length) {
    const std::vector<uint8_t> stream = Stream({length});
    ByteSpan bytes(stream);
    auto taken = inlet.Take(bytes);
    EXPECT_TRUE(taken.ok() && *taken);
    return std::move(**taken);
  };
  {
    const CarriedPacket one = take(100), other = take(90), third = take(100), little = take(1);
    EXPECT_EQ(store.kept(), 0u);
  }
  EXPECT_EQ(store.kept(), 2u) << "no more than that, and none of a short one";
  const CarriedPacket again = take(100);
  EXPECT_EQ(store.kept(), 1u);
  EXPECT_EQ(again.packet.data_length, 100u);
}

TEST(Inlet, ALengthIsRefusedBeforeTheDataCome) {
  std::vector<uint8_t> stream = Stream({101});
  stream.resize(Packet::kSize);
  Inlet inlet(kLimits);
  ByteSpan bytes(stream);
  const auto taken = inlet.Take(bytes);
  ASSERT_FALSE(taken.ok());
  EXPECT_EQ(taken.error(), "pk_len is 101; the hosts agreed on at most 100 (IMPI_C_DATALEN)");
}

}  // namespace
}  // namespace weft::impi
