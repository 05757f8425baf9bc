#include "ddp/sctp/chunk.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::ddp::sctp {
namespace {

using Bytes = std::vector<uint8_t>;

Bytes Serialize(const Chunk& chunk) {
  Bytes bytes(kControlHeaderLength);
  bytes.resize(chunk.SerializeHeader(bytes));
  bytes.insert(bytes.end(), chunk.body.begin(), chunk.body.end());
  return bytes;
}

TEST(ChunkTest, BytesOfTheRfcsFormats) {
  const Bytes segment = {0x12, 0x34, 0xc1, 0x40, 0xff};
  const auto parsed = Chunk::Parse(16, segment);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->kind, Chunk::Kind::kSegment);
  EXPECT_EQ(parsed->ssn, 0x1234);
  EXPECT_EQ(Bytes(parsed->body.begin(), parsed->body.end()), (Bytes{0xc1, 0x40, 0xff}));
  EXPECT_EQ(parsed->ToString(), "DDP Segment SSN=4660 segment=3");

  const Bytes accept = {0x00, 0x00, 0x00, 0x02, 'h', 'i'};
  const auto control = Chunk::Parse(17, accept);
  ASSERT_TRUE(control.ok());
  EXPECT_EQ(control->kind, Chunk::Kind::kAccept);
  EXPECT_FALSE(control->enhanced);
  EXPECT_EQ(control->ToString(), "DDP Accept SSN=0 private data=2");
  EXPECT_EQ(Serialize(*control), accept);

  const Bytes enhanced = {0x00, 0x00, 0x00, 0x05, 0x00, 0x10, 0x00, 0x20, 'x'};
  const auto initiate = Chunk::Parse(17, enhanced);
  ASSERT_TRUE(initiate.ok());
  EXPECT_EQ(initiate->kind, Chunk::Kind::kInitiate);
  EXPECT_TRUE(initiate->enhanced);
  EXPECT_EQ(initiate->ToString(), "DDP Enhanced Initiate SSN=0 private data=5");
  EXPECT_EQ(Serialize(*initiate), enhanced);
}

TEST(ChunkTest, EveryKindComesBackAsItWent) {
  const Bytes body(8, 7);
  for (int kind = 0; kind <= 4; ++kind) {
    for (bool enhanced : {false, true}) {
      Chunk chunk{.kind = static_cast<Chunk::Kind>(kind), .ssn = 65535, .enhanced = enhanced, .body = body};
      if (chunk.kind == Chunk::Kind::kTerminate) chunk.body = {};
      if (chunk.kind == Chunk::Kind::kTerminate || chunk.kind == Chunk::Kind::kSegment) chunk.enhanced = false;
      const Bytes bytes = Serialize(chunk);
      const auto parsed = Chunk::Parse(chunk.ppid(), bytes);
      ASSERT_TRUE(parsed.ok());
      EXPECT_EQ(parsed->kind, chunk.kind);
      EXPECT_EQ(parsed->ssn, 65535);
      EXPECT_EQ(parsed->enhanced, chunk.enhanced);
      EXPECT_EQ(parsed->body.size(), chunk.body.size());
    }
  }
}

TEST(ChunkTest, WhatIsNotAChunkSaysWhy) {
  const auto error = [](uint32_t ppid, const Bytes& bytes) { return Chunk::Parse(ppid, bytes).error(); };
  const auto with = [](Bytes front, size_t more) {
    front.resize(front.size() + more);
    return front;
  };
  for (uint32_t ppid : {0u, 1u, 15u, 18u, 16u << 24, 17u << 24, 0xffffffffu}) {
    EXPECT_EQ(error(ppid, Bytes(10)), ChunkError::kUnknownPpid);
  }
  for (size_t length = 0; length < 2; ++length) EXPECT_EQ(error(16, Bytes(length)), ChunkError::kTruncated);
  for (size_t length = 0; length < 4; ++length) EXPECT_EQ(error(17, Bytes(length)), ChunkError::kTruncated);
  EXPECT_EQ(error(16, Bytes(2)), ChunkError::kEmptySegment);
  EXPECT_TRUE(Chunk::Parse(16, Bytes(2 + 65535)).ok());
  EXPECT_EQ(error(16, Bytes(2 + 65536)), ChunkError::kSegmentTooLong);
  for (uint8_t function : {0, 8, 9, 255}) EXPECT_EQ(error(17, {0, 0, 0, function}), ChunkError::kUnknownFunction);
  EXPECT_EQ(error(17, {0, 0, 1, 1}), ChunkError::kUnknownFunction);
  for (uint8_t function : {1, 2, 3, 5, 6, 7}) {
    EXPECT_TRUE(Chunk::Parse(17, with({0, 0, 0, function}, 512)).ok());
    EXPECT_EQ(error(17, with({0, 0, 0, function}, 513)), ChunkError::kPrivateDataTooLong);
  }
  EXPECT_EQ(error(17, {0, 0, 0, 4, 0}), ChunkError::kPrivateDataInTerminate);
  EXPECT_EQ(error(17, {0, 0, 0, 5, 1, 2, 3}), ChunkError::kTruncatedReads);
  EXPECT_EQ(error(17, {0, 0, 0, 6}), ChunkError::kTruncatedReads);
  EXPECT_TRUE(Chunk::Parse(17, Bytes{0, 0, 0, 7}).ok());
}

TEST(ChunkTest, SegmentsFitIntoAPacketBesideASack) {
  EXPECT_EQ(MaxSegment(0), 516u);
  EXPECT_EQ(MaxSegment(549), 516u);
  EXPECT_EQ(MaxSegment(551), 517u);
  EXPECT_EQ(MaxSegment(1432), 1398u);
  EXPECT_EQ(MaxSegment(1 << 20), 65535u);
}

}  // namespace
}  // namespace weft::ddp::sctp
