#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "base/crc32c_kernels.h"

namespace weft {
namespace {

using Bytes = std::vector<uint8_t>;

// One bit at a time, straight from the definition.
uint32_t SlowCrc32c(ByteSpan bytes) {
  uint32_t state = 0xffffffff;
  for (uint8_t byte : bytes) {
    state ^= byte;
    for (int bit = 0; bit < 8; ++bit) state = (state & 1) ? (state >> 1) ^ crc32c::kPolynomial : state >> 1;
  }
  return ~state;
}

std::vector<const crc32c::Kernel*> AllKernels() {
  std::vector<const crc32c::Kernel*> kernels = {&crc32c::kPortable};
  for (const crc32c::Kernel* kernel : crc32c::HardwareKernels()) {
    if (kernel != nullptr) kernels.push_back(kernel);
  }
  return kernels;
}

Bytes RandomBytes(size_t count, uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(count);
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  return bytes;
}

TEST(Crc32cTest, MatchesTheExamplesOfIscsi) {
  // RFC 3720 appendix B.4, in the order of the wire.
  auto wire = [](ByteSpan bytes) {
    Bytes crc(4);
    StoreCrc32c(crc.data(), Crc32c(bytes));
    return crc;
  };
  EXPECT_EQ(wire(Bytes(32, 0x00)), (Bytes{0xaa, 0x36, 0x91, 0x8a}));
  EXPECT_EQ(wire(Bytes(32, 0xff)), (Bytes{0x43, 0xab, 0xa8, 0x62}));
  Bytes ascending(32);
  std::iota(ascending.begin(), ascending.end(), 0);
  EXPECT_EQ(wire(ascending), (Bytes{0x4e, 0x79, 0xdd, 0x46}));
  Bytes descending(ascending.rbegin(), ascending.rend());
  EXPECT_EQ(wire(descending), (Bytes{0x5c, 0xdb, 0x3f, 0x11}));
  const Bytes read_command = {0x01, 0xc0, 0, 0, 0, 0, 0,    0, 0,    0, 0, 0,    0, 0, 0, 0,
                              0x14, 0,    0, 0, 0, 0, 0x04, 0, 0,    0, 0, 0x14, 0, 0, 0, 0x18,
                              0x28, 0,    0, 0, 0, 0, 0,    0, 0x02, 0, 0, 0,    0, 0, 0, 0};
  EXPECT_EQ(wire(read_command), (Bytes{0x56, 0x3a, 0x96, 0xd9}));
}

TEST(Crc32cTest, MatchesTheCheckValueOfThePolynomial) {
  const Bytes digits = {'1', '2', '3', '4', '5', '6', '7', '8', '9'};
  EXPECT_EQ(Crc32c(digits), 0xe3069283u);
  EXPECT_EQ(Crc32c({}), 0u);
}

TEST(Crc32cTest, StoresAndLoadsLeastSignificantByteFirst) {
  uint8_t wire[4];
  StoreCrc32c(wire, 0x11223344);
  EXPECT_EQ(wire[0], 0x44);
  EXPECT_EQ(wire[3], 0x11);
  EXPECT_EQ(LoadCrc32c(wire), 0x11223344u);
}

TEST(Crc32cTest, EveryKernelAgreesWithTheDefinitionAtEveryLengthAndAlignment) {
  const Bytes bytes = RandomBytes(4200, 1);
  for (const crc32c::Kernel* kernel : AllKernels()) {
    SCOPED_TRACE(kernel->name);
    for (size_t length = 0; length <= 1100; ++length) {
      const size_t offset = length % 17;
      const ByteSpan part(bytes.data() + offset, length);
      ASSERT_EQ(~kernel->extend(~0u, part.data(), length), SlowCrc32c(part)) << length;
    }
    for (size_t length : {2303u, 2304u, 3071u, 3072u, 3073u, 3455u, 3456u, 4095u, 4096u, 4097u, 4200u}) {
      ASSERT_EQ(~kernel->extend(~0u, bytes.data(), length), SlowCrc32c(ByteSpan(bytes).first(length))) << length;
    }
  }
}

TEST(Crc32cTest, EveryKernelCopiesWhatItChecksumsAndNothingElse) {
  const Bytes from = RandomBytes(70000, 2);
  for (const crc32c::Kernel* kernel : AllKernels()) {
    SCOPED_TRACE(kernel->name);
    for (size_t length : {0u,   1u,   2u,   3u,   7u,   8u,   9u,   63u,   64u,   95u,   96u,    97u,   255u,
                          256u, 257u, 383u, 384u, 511u, 512u, 513u, 3071u, 3072u, 4097u, 65535u, 65536u}) {
      Bytes to(length + 16, 0xa5);
      const uint32_t state = kernel->copy(0x12345678, to.data() + 8, from.data() + 3, length);
      ASSERT_EQ(state, crc32c::kPortable.extend(0x12345678, from.data() + 3, length)) << length;
      ASSERT_EQ(std::memcmp(to.data() + 8, from.data() + 3, length), 0) << length;
      for (size_t i = 0; i < 8; ++i) {
        ASSERT_EQ(to[i], 0xa5) << length;
        ASSERT_EQ(to[8 + length + i], 0xa5) << length;
      }
    }
  }
}

TEST(Crc32cTest, ExtendsOverEverySplitPoint) {
  const Bytes bytes = RandomBytes(600, 3);
  const uint32_t whole = Crc32c(bytes);
  Bytes copy(bytes.size());
  for (size_t split = 0; split <= bytes.size(); ++split) {
    const uint32_t front = Crc32c(ByteSpan(bytes).first(split));
    ASSERT_EQ(Crc32cExtend(front, ByteSpan(bytes).subspan(split)), whole) << split;
    ASSERT_EQ(Crc32cCopy(front, copy.data(), bytes.data() + split, bytes.size() - split), whole) << split;
  }
}

TEST(Crc32cTest, SeesEveryFlippedBit) {
  Bytes bytes = RandomBytes(300, 4);
  const uint32_t right = Crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
    ASSERT_NE(Crc32c(bytes), right) << bit;
    bytes[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
  }
}

TEST(Crc32cTest, PowersOfXMultiplyAsTheyShould) {
  for (uint64_t n : {0u, 1u, 31u, 32u, 33u, 64u, 1000u}) {
    EXPECT_EQ(crc32c::Multiply(crc32c::PowerOfX(n), crc32c::PowerOfX(77)), crc32c::PowerOfX(n + 77)) << n;
  }
}

}  // namespace
}  // namespace weft
