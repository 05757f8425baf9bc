#include "mpi_hybrid/rma/wire.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace weft::mpi::rma {
namespace {

std::vector<uint8_t> DataBody(const std::vector<Block>& blocks, uint32_t bytes, size_t given) {
  std::vector<uint8_t> body(kSlotBytes);
  body.resize(WriteDataHeader({.op = MPI_SUM, .basic = MPI_INT, .bytes = bytes}, blocks, body) + given);
  return body;
}

bool Parses(const std::vector<uint8_t>& body, bool with_data = true) {
  Block blocks[kMaxBlocks];
  ByteSpan data;
  return ParseData(body, with_data, blocks, &data).has_value();
}

TEST(WireTest, AnOperationThatIsAWholeEpochIsADataMessageThatIsAnswered) {
  uint8_t bytes[kHeaderBytes];
  WriteHeader({MessageKind::kPut, true, 5, 1, LockKind::kExclusive}, bytes);
  EXPECT_EQ(bytes[1], 5);
  auto parsed = ParseHeader(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->epoch, LockKind::kExclusive);
  EXPECT_TRUE(parsed->wants_reply);
  WriteHeader({MessageKind::kPut, false, 5, 1, LockKind::kShared}, bytes);
  EXPECT_FALSE(ParseHeader(bytes)) << "nobody would learn that the lock was not free";
  WriteHeader({MessageKind::kUnlock, true, 5, 1, LockKind::kShared}, bytes);
  EXPECT_FALSE(ParseHeader(bytes));
  WriteHeader({MessageKind::kPut, true, 5, 1}, bytes);
  bytes[1] |= 6;
  EXPECT_FALSE(ParseHeader(bytes)) << "both kinds of lock";
}

TEST(WireTest, AnOriginAsksForMoreRoomInAnyMessage) {
  uint8_t bytes[kHeaderBytes];
  WriteHeader({.kind = MessageKind::kFence, .window = 1, .wants_room = true}, bytes);
  EXPECT_EQ(bytes[1], 8);
  auto parsed = ParseHeader(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->wants_room);
  EXPECT_FALSE(parsed->wants_reply);
  EXPECT_EQ(parsed->epoch, LockKind::kNone);
  bytes[1] = 64;
  EXPECT_FALSE(ParseHeader(bytes)) << "a flag that does not exist";
}

TEST(WireTest, OnlyAFencePromises) {
  uint8_t bytes[kHeaderBytes];
  WriteHeader({.kind = MessageKind::kFence, .window = 1, .promises = true}, bytes);
  EXPECT_EQ(bytes[1], 16);
  const auto parsed = ParseHeader(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_TRUE(parsed->promises);
  bytes[0] = static_cast<uint8_t>(MessageKind::kPost);
  EXPECT_FALSE(ParseHeader(bytes));
}

TEST(WireTest, OnlyAGetThatIsAnsweredBringsAFence) {
  uint8_t bytes[kHeaderBytes];
  for (const MessageKind kind : {MessageKind::kGet, MessageKind::kGetByWrite}) {
    WriteHeader({.kind = kind, .wants_reply = true, .window = 1, .with_fence = true}, bytes);
    EXPECT_EQ(bytes[1], 33);
    const auto parsed = ParseHeader(bytes);
    ASSERT_TRUE(parsed);
    EXPECT_TRUE(parsed->with_fence);
    bytes[1] = 32;
    EXPECT_FALSE(ParseHeader(bytes)) << "nothing would bring the data";
  }
  bytes[0] = static_cast<uint8_t>(MessageKind::kGet);
  bytes[1] = 33 | 2;
  EXPECT_FALSE(ParseHeader(bytes)) << "an epoch of locks has no fence";
  for (const MessageKind kind : {MessageKind::kNothing, MessageKind::kFence, MessageKind::kPut, MessageKind::kGetAccumulate}) {
    bytes[0] = static_cast<uint8_t>(kind);
    bytes[1] = 33;
    EXPECT_FALSE(ParseHeader(bytes));
  }
}

TEST(WireTest, AFenceBehindAGetIsTheEndOfTheBody) {
  uint8_t bytes[4 + kFenceBehindBytes] = {1, 2, 3, 4};
  ASSERT_EQ(WriteFenceBehind({.number = 0x01020304, .promises = true, .asks = true, .reply_slot = 5}, std::span(bytes).subspan(4)), kFenceBehindBytes);
  const uint8_t expected[] = {1, 2, 3, 4, 1, 2, 3, 4, 0, 3, 0, 5};
  EXPECT_EQ(std::memcmp(bytes, expected, sizeof expected), 0);
  ByteSpan body(bytes);
  const auto fence = TakeFenceBehind(&body);
  ASSERT_TRUE(fence);
  EXPECT_EQ(fence->number, 0x01020304u);
  EXPECT_TRUE(fence->promises);
  EXPECT_TRUE(fence->asks);
  EXPECT_EQ(fence->reply_slot, 5);
  EXPECT_EQ(body.size(), 4u);
  EXPECT_FALSE(TakeFenceBehind(&body)) << "too short";
  bytes[11] = kSlots;
  body = ByteSpan(bytes);
  EXPECT_FALSE(TakeFenceBehind(&body)) << "a slot that does not exist";
  bytes[11] = 0;
  bytes[9] = 4;
  EXPECT_FALSE(TakeFenceBehind(&body)) << "a flag that does not exist";
}

TEST(WireTest, AReplyMayBeThatToTheFenceToo) {
  uint8_t bytes[kReplyBytes];
  WriteReply({.status = ReplyStatus::kOutOfRange, .reply_slot = 3, .consumed = 7, .room = 2, .of_fence = true}, bytes);
  EXPECT_EQ(bytes[0], 129);
  auto parsed = ParseReply(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->status, ReplyStatus::kOutOfRange);
  EXPECT_TRUE(parsed->of_fence);
  bytes[0] = 1;
  parsed = ParseReply(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_FALSE(parsed->of_fence);
  bytes[0] = 128 | 3;
  EXPECT_FALSE(ParseReply(bytes));
}

TEST(WireTest, AGetByWriteNamesTheOriginsMemory) {
  uint8_t bytes[24];
  ASSERT_EQ(WriteGetByWrite({.offset = 1, .address = 2, .key = 3, .bytes = kMostGetByWrite}, bytes), sizeof bytes);
  const auto parsed = ParseGetByWrite(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->offset, 1u);
  EXPECT_EQ(parsed->address, 2u);
  EXPECT_EQ(parsed->key, 3u);
  EXPECT_EQ(parsed->bytes, kMostGetByWrite);
  EXPECT_FALSE(ParseGetByWrite(ByteSpan(bytes, sizeof bytes - 1)));
  WriteGetByWrite({.bytes = 0}, bytes);
  EXPECT_FALSE(ParseGetByWrite(bytes));
  WriteGetByWrite({.bytes = kMostGetByWrite + 1}, bytes);
  EXPECT_FALSE(ParseGetByWrite(bytes));
}

TEST(WireTest, HeaderOnTheWire) {
  uint8_t bytes[kHeaderBytes];
  ASSERT_EQ(WriteHeader({MessageKind::kAccumulate, true, 5, 0x01020304}, bytes), kHeaderBytes);
  const uint8_t expected[] = {9, 1, 0, 5, 1, 2, 3, 4};
  EXPECT_EQ(std::memcmp(bytes, expected, sizeof expected), 0);
  const auto parsed = ParseHeader(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->kind, MessageKind::kAccumulate);
  EXPECT_TRUE(parsed->wants_reply);
  EXPECT_EQ(parsed->reply_slot, 5);
  EXPECT_EQ(parsed->window, 0x01020304u);
}

TEST(WireTest, HeadersThatMeanNothingAreRefused) {
  uint8_t bytes[kHeaderBytes] = {};
  EXPECT_TRUE(ParseHeader(bytes));
  EXPECT_FALSE(ParseHeader(ByteSpan(bytes, kHeaderBytes - 1)));
  bytes[0] = static_cast<uint8_t>(MessageKind::kLast) + 1;
  EXPECT_FALSE(ParseHeader(bytes));
  bytes[0] = 0;
  bytes[1] = 2;
  EXPECT_FALSE(ParseHeader(bytes));
  bytes[1] = 1;
  bytes[3] = kSlots;
  EXPECT_FALSE(ParseHeader(bytes));
}

TEST(WireTest, DataGoesThereAndBack) {
  const std::vector<Block> blocks = {{100, 8, 3, 24}, {4000, 4, 1, 0}, {9000, 2, 2, -50}};
  auto body = DataBody(blocks, 32, 32);
  for (size_t i = 0; i < 32; ++i) body[body.size() - 32 + i] = static_cast<uint8_t>(i);
  Block parsed_blocks[kMaxBlocks];
  ByteSpan data;
  const auto parsed = ParseData(body, true, parsed_blocks, &data);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->op, MPI_SUM);
  EXPECT_EQ(parsed->basic, MPI_INT);
  EXPECT_EQ(parsed->blocks, 3);
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(parsed_blocks[i].offset, blocks[i].offset);
    EXPECT_EQ(parsed_blocks[i].bytes, blocks[i].bytes);
    EXPECT_EQ(parsed_blocks[i].count, blocks[i].count);
    EXPECT_EQ(parsed_blocks[i].stride, blocks[i].stride);
  }
  ASSERT_EQ(data.size(), 32u);
  EXPECT_EQ(data[31], 31);
}

TEST(WireTest, EveryShorterBodyIsRefused) {
  const auto body = DataBody({{0, 8, 2, 16}}, 16, 16);
  ASSERT_TRUE(Parses(body));
  for (size_t length = 0; length < body.size(); ++length) {
    EXPECT_FALSE(Parses({body.begin(), body.begin() + static_cast<ptrdiff_t>(length)})) << length;
  }
}

TEST(WireTest, BlocksMustHoldTheDataExactly) {
  EXPECT_FALSE(Parses(DataBody({{0, 8, 2, 16}}, 15, 15)));
  EXPECT_FALSE(Parses(DataBody({{0, 8, 2, 16}}, 17, 17)));
  EXPECT_FALSE(Parses(DataBody({{0, 8, 2, 16}}, 16, 17)));
  EXPECT_FALSE(Parses(DataBody({{0, 8, 2, 16}}, 16, 16), false));
  EXPECT_TRUE(Parses(DataBody({{0, 8, 2, 16}}, 16, 0), false));
}

TEST(WireTest, EmptyBlocksAreRefused) {
  EXPECT_FALSE(Parses(DataBody({}, 0, 0)));
  EXPECT_FALSE(Parses(DataBody({{0, 0, 1, 0}}, 0, 0)));
  EXPECT_FALSE(Parses(DataBody({{0, 8, 0, 0}}, 0, 0)));
}

TEST(WireTest, BlocksThatLeaveTheAddressSpaceAreRefused) {
  EXPECT_FALSE(Parses(DataBody({{UINT64_MAX - 3, 4, 1, 0}}, 4, 4)));
  EXPECT_FALSE(Parses(DataBody({{8, 4, 4, -4}}, 16, 16)));
  EXPECT_TRUE(Parses(DataBody({{12, 4, 4, -4}}, 16, 16)));
  EXPECT_FALSE(Parses(DataBody({{0, 4, 4, INT64_MAX}}, 16, 16)));
  EXPECT_FALSE(Parses(DataBody({{0, 4, 4, INT64_MIN}}, 16, 16)));
  EXPECT_FALSE(Parses(DataBody({{0, UINT32_MAX, UINT32_MAX, 1}}, 16, 16)));
}

TEST(WireTest, CompareAndSwapHasTwoElementsOfEqualLength) {
  const uint8_t origin[] = {1, 2, 3, 4}, compare[] = {5, 6, 7, 8};
  uint8_t bytes[64];
  const size_t length = WriteCompareAndSwap({77, MPI_INT, origin, compare}, bytes);
  const auto parsed = ParseCompareAndSwap({bytes, length});
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->offset, 77u);
  EXPECT_EQ(parsed->origin[0], 1);
  EXPECT_EQ(parsed->compare[3], 8);
  EXPECT_FALSE(ParseCompareAndSwap({bytes, length - 1}));
  EXPECT_FALSE(ParseCompareAndSwap({bytes, 12}));
  EXPECT_FALSE(ParseCompareAndSwap({bytes, 12 + 34}));
}

TEST(WireTest, RepliesForNoSlotAreRefused) {
  uint8_t bytes[kReplyBytes];
  WriteReply({ReplyStatus::kOutOfRange, 3, 0xfffffffe, 8}, bytes);
  const auto parsed = ParseReply(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->status, ReplyStatus::kOutOfRange);
  EXPECT_EQ(parsed->consumed, 0xfffffffeu);
  EXPECT_EQ(parsed->room, 8);
  for (int room : {0, 17, 255}) {
    bytes[1] = static_cast<uint8_t>(room);
    EXPECT_FALSE(ParseReply(bytes)) << room;
  }
  bytes[1] = kSlots;
  EXPECT_TRUE(ParseReply(bytes));
  bytes[3] = kSlots;
  EXPECT_FALSE(ParseReply(bytes));
  bytes[3] = 0;
  bytes[0] = 3;
  EXPECT_FALSE(ParseReply(bytes));
}

TEST(WireTest, PrivateDataMayBePadded) {
  const ProcessName origin{.job = {{9, 8}}, .rank = 12};
  const Hello hello{.origin = origin, .nonce = NewNonce(), .proof = {1, 2, 3}};
  std::vector<uint8_t> bytes(kHelloBytes + 20);
  WriteHello(hello, std::span<uint8_t, kHelloBytes>(bytes.data(), kHelloBytes));
  const auto parsed = ParseHello(bytes);
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->origin, origin);
  EXPECT_EQ(parsed->nonce, hello.nonce);
  EXPECT_EQ(parsed->proof, hello.proof);
  EXPECT_FALSE(ParseHello(ByteSpan(bytes).first(kHelloBytes - 1)));
  EXPECT_FALSE(ParseWelcome(bytes));
  WriteWelcome({77, 88, {4, 5}}, std::span<uint8_t, kWelcomeBytes>(bytes.data(), kWelcomeBytes));
  const auto welcome = ParseWelcome(bytes);
  ASSERT_TRUE(welcome);
  EXPECT_EQ(welcome->control_address, 77u);
  EXPECT_EQ(welcome->control_key, 88u);
  EXPECT_EQ(welcome->proof[1], 5);
  EXPECT_FALSE(ParseWelcome(ByteSpan(bytes).first(kWelcomeBytes - 1)));
}

TEST(WireTest, AProofIsOfOneSideOneConnectionAndOneSecret) {
  const JobSecret secret = JobSecret::Random();
  const Acquaintance said{NewNonce(), NewNonce(), {{{1}}, 3}, 4, 5};
  const JobSecret::Proof proof = Prove(secret, kTarget, said);
  EXPECT_TRUE(Verifies(secret, kTarget, said, proof));
  EXPECT_FALSE(Verifies(secret, kOrigin, said, proof)) << "sent back to whom it came from";
  EXPECT_FALSE(Verifies(JobSecret::Random(), kTarget, said, proof));
  EXPECT_TRUE(Verifies(secret, kOrigin, said, ProveShortly(secret, kOrigin, said)));
  Acquaintance other[] = {said, said, said, said, said, said};
  other[0].target = NewNonce();
  other[1].origin = NewNonce();
  ++other[2].process.rank;
  ++other[5].process.job.bytes[15];
  ++other[3].control_address;
  ++other[4].control_key;
  for (const Acquaintance& one : other) EXPECT_FALSE(Verifies(secret, kTarget, one, proof));
}

}  // namespace
}  // namespace weft::mpi::rma
