#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "wires/host/ring/consumer.h"
#include "wires/host/ring/producer.h"

namespace weft::host {
namespace {

using Look = Consumer::Look;

constexpr uint64_t kSecret = 0x123456789abcdef1u;

class RingTest : public testing::Test {
 protected:
  struct alignas(kLine) Memory {
    RingWords words{};
    uint8_t bytes[kRingBytes]{};
  };

  static ByteSpan Bytes(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }
  static iovec PieceOf(std::string& text) { return {text.data(), text.size()}; }
  RecordHead& HeadAt(uint64_t line) { return *reinterpret_cast<RecordHead*>(memory_->bytes + line * kLine); }

  void Append(const std::string& header, std::string payload) {
    ASSERT_TRUE(producer_.HasRoom(Producer::RecordBytes(header.size() + payload.size()), 0));
    const iovec piece = PieceOf(payload);
    producer_.AppendUlpdu(Bytes(header), {&piece, 1}, payload.size());
  }
  // The next ULPDU; or what was seen in its place.
  std::string Take() {
    Consumer::Record record;
    switch (consumer_.Next(&record)) {
      case Look::kNothing:
        return "(nothing)";
      case Look::kBusy:
        return "(busy)";
      case Look::kRevoked:
        return "(revoked)";
      case Look::kNonsense:
        return "(nonsense)";
      case Look::kRecord:
        break;
    }
    std::string text(reinterpret_cast<const char*>(record.bytes.data()), record.bytes.size());
    consumer_.Consume(record);
    return text;
  }

  std::unique_ptr<Memory> memory_ = std::make_unique<Memory>();
  Producer producer_{memory_->words, memory_->bytes, kSecret};
  Consumer consumer_{memory_->words, memory_->bytes, kSecret};
};

TEST_F(RingTest, UlpdusComeInOrder) {
  EXPECT_EQ(Take(), "(nothing)");
  Append("head", "payload");
  Append("second", "");
  EXPECT_EQ(Take(), "headpayload");
  EXPECT_EQ(Take(), "second");
  EXPECT_EQ(Take(), "(nothing)");
}

TEST_F(RingTest, EveryLengthGoesRoundAndRound) {
  std::mt19937 random(1);
  uint64_t sent = 0, taken = 0;
  std::vector<std::string> expected;
  for (int round = 0; round < 20000; ++round) {
    const size_t length = random() % 4 == 0 ? random() % kMostCopied : random() % 200;
    if (producer_.HasRoom(Producer::RecordBytes(1 + length), 4)) {
      std::string payload(length, static_cast<char>(sent));
      expected.push_back("h" + payload);
      Append("h", payload);
      ++sent;
    } else {
      ASSERT_LT(taken, sent) << "an empty ring has room for each";
    }
    if (random() % 3 == 0) {
      while (taken != sent) {
        ASSERT_EQ(Take(), expected[taken]) << "round " << round;
        ++taken;
      }
      consumer_.Publish();
    }
  }
  EXPECT_GT(sent, 5000u);
}

TEST_F(RingTest, WhatIsNotPublishedIsNotOverwritten) {
  const std::string payload(1000, 'x');
  int appended = 0;
  for (; producer_.HasRoom(Producer::RecordBytes(4 + payload.size()), 0); ++appended) Append("head", payload);
  EXPECT_GT(appended, 50);
  Take();
  EXPECT_FALSE(producer_.HasRoom(Producer::RecordBytes(4 + payload.size()), 0));
  consumer_.Publish();
  EXPECT_FALSE(consumer_.TakeBell()) << "nobody waits for that";
  EXPECT_TRUE(producer_.HasRoom(Producer::RecordBytes(4 + payload.size()), 0));
}

TEST_F(RingTest, SpareLinesAreLeftAlone) {
  const size_t bytes = Producer::RecordBytes(4);
  while (producer_.HasRoom(bytes, 2)) Append("head", "");
  EXPECT_TRUE(producer_.HasRoom(bytes, 1));
}

TEST_F(RingTest, WhoSleepsIsRungForOnce) {
  EXPECT_TRUE(consumer_.Sleep());
  Append("a", "");
  EXPECT_TRUE(producer_.TakeBell());
  EXPECT_FALSE(producer_.TakeBell()) << "once";
  EXPECT_FALSE(consumer_.Sleep()) << "something has come";
  consumer_.StayAwake();
  EXPECT_FALSE(producer_.TakeBell());
}

TEST_F(RingTest, WhoWaitsForRoomHearsWhenThereIsMore) {
  Append("a", "");
  EXPECT_FALSE(producer_.AskForRoom()) << "nothing has moved";
  Take();
  consumer_.Publish();
  EXPECT_TRUE(consumer_.TakeBell());
  EXPECT_FALSE(consumer_.TakeBell()) << "once";
  EXPECT_TRUE(producer_.AskForRoom()) << "it has moved already";
}

TEST_F(RingTest, APayloadIsNamedWhereItLies) {
  std::string first = "first", second = "second";
  const iovec pieces[] = {PieceOf(first), PieceOf(second)};
  const uint64_t line = producer_.AppendReference(Bytes("header"), pieces, first.size() + second.size());
  Consumer::Record record;
  ASSERT_EQ(consumer_.Next(&record), Look::kRecord);
  EXPECT_EQ(record.kind, Kind::kReference);
  EXPECT_EQ(record.length, 17u);
  EXPECT_EQ(std::string(record.header.begin(), record.header.begin() + 6), "header");
  ASSERT_EQ(record.pieces, 2u);
  EXPECT_EQ(record.payload[1].address, reinterpret_cast<uintptr_t>(second.data()));
  EXPECT_EQ(record.payload[1].length, second.size());
  EXPECT_EQ(producer_.ClaimBack(line), Claim::kConsumer) << "it is being read";
  consumer_.Consume(record);
  consumer_.Publish();
  ASSERT_TRUE(producer_.Refresh());
  EXPECT_GT(producer_.passed(), line);
}

TEST_F(RingTest, APayloadThatIsTakenBackIsNotRead) {
  std::string payload = "payload";
  const iovec piece = PieceOf(payload);
  const uint64_t line = producer_.AppendReference(Bytes("header"), {&piece, 1}, payload.size());
  EXPECT_EQ(producer_.Revoke(line), Claim::kNobody);
  EXPECT_EQ(Take(), "(revoked)");
  EXPECT_EQ(Take(), "(revoked)") << "and so for ever";
}

TEST_F(RingTest, AReaderFindsThatItsPayloadWasTakenBack) {
  std::string payload = "payload";
  const iovec piece = PieceOf(payload);
  const uint64_t line = producer_.AppendReference(Bytes("header"), {&piece, 1}, payload.size());
  Consumer::Record record;
  ASSERT_EQ(consumer_.Next(&record), Look::kRecord);
  EXPECT_TRUE(consumer_.IsStillOurs());
  EXPECT_EQ(producer_.Revoke(line), Claim::kConsumer);
  EXPECT_FALSE(consumer_.IsStillOurs());
  EXPECT_FALSE(consumer_.Refuse()) << "nobody would make a copy";
}

TEST_F(RingTest, MemoryThatGoesAwayIsReplacedBeforeItIsRead) {
  std::string first = "first", second = "second", copy = "firstsecond";
  const iovec pieces[] = {PieceOf(first), PieceOf(second)};
  const uint64_t line = producer_.AppendReference(Bytes("header"), pieces, copy.size());
  Append("behind", "");
  ASSERT_EQ(producer_.ClaimBack(line), Claim::kNobody);
  EXPECT_EQ(Take(), "(busy)");
  producer_.Replace(line, copy.data(), copy.size());
  Consumer::Record record;
  ASSERT_EQ(consumer_.Next(&record), Look::kRecord);
  EXPECT_EQ(record.payload[0].address, reinterpret_cast<uintptr_t>(copy.data()));
  EXPECT_EQ(record.payload[0].length, copy.size());
  consumer_.Consume(record);
  EXPECT_EQ(Take(), "behind") << "the record is as long as it was";
}

TEST_F(RingTest, OfWhatIsPlacedOnlyTheHeaderComes) {
  producer_.AppendPlaced(Bytes("header"), 60000);
  Append("behind", "");
  Consumer::Record record;
  ASSERT_EQ(consumer_.Next(&record), Look::kRecord);
  EXPECT_EQ(record.kind, Kind::kPlaced);
  EXPECT_EQ(record.length, 60006u);
  EXPECT_EQ(record.lines, 1u);
  EXPECT_EQ(std::string(record.header.begin(), record.header.begin() + static_cast<ptrdiff_t>(record.header_length)), "header");
  consumer_.Consume(record);
  EXPECT_EQ(Take(), "behind");
}

TEST_F(RingTest, BytesOfAProgramDoNotPassForARecord) {
  // Where a later record would begin lies what a record there looks like, but for the secret.
  std::string forged(kLine, '\0');
  const uint64_t stamp = StampOf(0, 3);
  std::memcpy(forged.data() + kLine - sizeof(RecordHead) - 4, &stamp, sizeof stamp);
  Append("head", forged);
  Take();
  EXPECT_EQ(Take(), "(nothing)");
}

TEST_F(RingTest, AProducerThatLiesIsFoundOut) {
  const auto lie = [&](const auto& change) {
    memory_ = std::make_unique<Memory>();
    Producer producer(memory_->words, memory_->bytes, kSecret);
    std::string payload = "payload";
    const iovec piece = PieceOf(payload);
    producer.AppendReference(Bytes("header"), {&piece, 1}, payload.size());
    change(HeadAt(0), *reinterpret_cast<Reference*>(memory_->bytes + sizeof(RecordHead)));
    Consumer consumer(memory_->words, memory_->bytes, kSecret);
    Consumer::Record record;
    return consumer.Next(&record);
  };
  EXPECT_EQ(lie([](RecordHead&, Reference&) {}), Look::kRecord);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.kind = 0; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.kind = 99; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.length = kMostUlpdu + 1; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.length = 6; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.header = kHeaderRoom + 1; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.header = 0; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.pieces = kMostPieces + 1; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.pieces = 0; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead&, Reference& reference) { reference.pieces[0].length = 6; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead&, Reference& reference) { reference.pieces[0].length = ~uint64_t{0}; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead&, Reference& reference) { reference.claim = 7; }), Look::kNonsense);
  const auto placed = [](RecordHead& head, uint32_t length, uint8_t header) {
    head.kind = static_cast<uint8_t>(Kind::kPlaced);
    head.length = length;
    head.header = header;
  };
  EXPECT_EQ(lie([&](RecordHead& head, Reference&) { placed(head, 100, 14); }), Look::kRecord);
  EXPECT_EQ(lie([&](RecordHead& head, Reference&) { placed(head, 100, 0); }), Look::kNonsense);
  EXPECT_EQ(lie([&](RecordHead& head, Reference&) { placed(head, 100, kHeaderRoom + 1); }), Look::kNonsense);
  EXPECT_EQ(lie([&](RecordHead& head, Reference&) { placed(head, 14, 14); }), Look::kNonsense);
  EXPECT_EQ(lie([&](RecordHead& head, Reference&) { placed(head, kMostUlpdu + 1, 14); }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.kind = static_cast<uint8_t>(Kind::kUlpdu), head.length = 0; }), Look::kNonsense);
  EXPECT_EQ(lie([](RecordHead& head, Reference&) { head.kind = static_cast<uint8_t>(Kind::kUlpdu), head.length = kRingBytes; }),
            Look::kNonsense);
}

TEST_F(RingTest, AConsumerThatLiesIsFoundOut) {
  Append("a", "");
  memory_->words.tail = 2;
  EXPECT_FALSE(producer_.Refresh()) << "more than there was";
  memory_->words.tail = 1;
  EXPECT_TRUE(producer_.Refresh());
  memory_->words.tail = 0;
  EXPECT_FALSE(producer_.Refresh()) << "backwards";
}

TEST_F(RingTest, TwoThreadsPassManyAndNoWakeUpIsLost) {
  constexpr uint64_t kCount = 200000;
  std::atomic<int> bell{0};
  std::thread other([&] {
    for (uint64_t i = 0; i < kCount; ++i) {
      std::string text = std::to_string(i);
      while (!producer_.HasRoom(Producer::RecordBytes(text.size()), 0)) std::this_thread::yield();
      producer_.AppendUlpdu(Bytes(text), {}, 0);
      if (producer_.TakeBell()) {
        bell.store(1);
        bell.notify_one();
      }
    }
  });
  for (uint64_t i = 0; i < kCount;) {
    const std::string text = Take();
    if (text != "(nothing)") {
      ASSERT_EQ(text, std::to_string(i));
      ++i;
      consumer_.Publish();
    } else if (consumer_.Sleep()) {
      bell.wait(0);
      bell.store(0);
    } else {
      consumer_.StayAwake();
    }
  }
  other.join();
}

}  // namespace
}  // namespace weft::host
