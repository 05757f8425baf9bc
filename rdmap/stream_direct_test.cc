// Wires that reach the peer's memory by themselves: fetched Reads and placed Writes.
#include <gtest/gtest.h>

#include <cstring>
#include <span>

#include "rdmap/stream.h"
#include "rdmap/testing/fake_host.h"
#include "rdmap/testing/segments.h"
#include "rdmap/testing/wire.h"

namespace weft::rdmap {
namespace {

using testing::Deliver;
using testing::Pattern;
using testing::Wire;

constexpr ddp::STag kRegion{0x100};
constexpr uint64_t kBase = 0x10000;
constexpr size_t kSize = 8192;

// A wire that places the payload of Writes in the peer's memory by itself.
class PlacingWire final : public llp::UlpduWriter {
 public:
  explicit PlacingWire(Wire& wire) : wire_(wire) {}

  size_t max_ulpdu() const override { return wire_.max_ulpdu(); }
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override { return wire_.HasRoom(payload_length, payload_pieces); }
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override {
    placed_ = places && (header[0] & 0x80) != 0;  // the T bit
    wire_.Append(header, payload, volatile_payload);
  }
  bool placed() const override { return placed_; }
  uint64_t appended() const override { return wire_.appended(); }

  bool places = true;

 private:
  Wire& wire_;
  bool placed_ = false;
};

// A wire that reads the peer's memory by itself, when it is told that it can.
class FetchingWire final : public llp::UlpduWriter {
 public:
  explicit FetchingWire(Wire& wire) : wire_(wire) {}

  size_t max_ulpdu() const override { return wire_.max_ulpdu(); }
  bool HasRoom(size_t payload_length, size_t payload_pieces) const override { return wire_.HasRoom(payload_length, payload_pieces); }
  void Append(ByteSpan header, std::span<const iovec> payload, bool volatile_payload) override {
    wire_.Append(header, payload, volatile_payload);
  }
  uint64_t appended() const override { return wire_.appended(); }
  bool Fetch(uint32_t tag, uint64_t offset, std::span<const iovec> to, size_t length, bool /*alone*/) override {
    EXPECT_EQ(tag, 7u);
    if (!can) return false;
    size_t room = 0;
    for (const iovec& piece : to) {
      std::memset(piece.iov_base, static_cast<int>(offset), piece.iov_len);
      room += piece.iov_len;
    }
    EXPECT_EQ(room, length);
    ++fetched;
    return true;
  }

  bool can = true;
  int fetched = 0;

 private:
  Wire& wire_;
};

class FetchedReadTest : public ::testing::Test {
 protected:
  explicit FetchedReadTest(Delivery delivery = Delivery::kReliable)
      : from_({.ord = 4, .delivery = delivery, .scatter_reads = delivery == Delivery::kReliable}), to_({.ird = 4, .delivery = delivery}) {
    to_.host.AddRegion(ddp::STag(7), 0, 100);
    from_.host.AddRegion(ddp::STag(8), 0, 100);
    for (int i = 0; i < 4; ++i) to_.host.PostReceive({10});
  }
  void PostRead(uint32_t length = 10) { from_.host.PostRead(ddp::STag(7), 42, length, ddp::STag(8), 0); }
  void PostSend() {
    Request request;
    request.opcode = Opcode::kSend;
    request.acknowledge = false;
    from_.host.Post(request, Pattern(10));
  }
  void Transmit() {
    from_.stream.Transmit(out_);
    from_.stream.OnTransmitted(from_.wire.appended());
  }

  testing::Endpoint from_, to_;
  FetchingWire out_{from_.wire};
};

TEST_F(FetchedReadTest, IsDoneAtOnceAndThePeerHearsNothing) {
  PostRead();
  const uint64_t before = from_.stream.answers();
  Transmit();
  EXPECT_EQ(from_.host.reads_done, std::vector{0});
  EXPECT_EQ(from_.host.fetched_bytes, 10u);
  EXPECT_EQ(from_.host.FindRegion(ddp::STag(8))->bytes[9], 42);
  EXPECT_EQ(from_.host.FindRegion(ddp::STag(8))->bytes[10], 0);
  EXPECT_TRUE(from_.wire.empty());
  EXPECT_GT(from_.stream.answers(), before) << "the peer is there";
  // It has no number: what follows is the peer's first.
  PostSend();
  Transmit();
  Exchange(from_, to_);
  to_.stream.Acknowledge();
  Exchange(from_, to_);
  EXPECT_EQ(from_.stream.acknowledged(), 1u);
  EXPECT_EQ(from_.host.sent, std::vector{1});
}

TEST_F(FetchedReadTest, SaysThatWhatWasBeforeItIsDone) {
  PostSend();
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 1);
  EXPECT_EQ(from_.host.sent, std::vector{0});
}

TEST_F(FetchedReadTest, DoesNotOvertakeOneThatIsNotAnswered) {
  out_.can = false;
  PostRead();
  Transmit();
  out_.can = true;
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 0);
  EXPECT_EQ(from_.wire.size(), 2u);
  Exchange(from_, to_);
  EXPECT_EQ(from_.host.reads_done, (std::vector{0, 1}));
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 1);
}

TEST_F(FetchedReadTest, WhoReadsAndReadsLetsOthersHaveTheirTurn) {
  for (int i = 0; i < 30; ++i) PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 16);
  EXPECT_EQ(from_.wire.size(), 4u) << "of the others as many as may be under way";
  Exchange(from_, to_);
  EXPECT_EQ(from_.host.reads_done.size(), 30u);
}

TEST_F(FetchedReadTest, AnEmptyOneIsThePeersToAnswer) {
  PostRead(0);
  Transmit();
  EXPECT_EQ(out_.fetched, 0);
  EXPECT_EQ(from_.wire.size(), 1u);
}

TEST_F(FetchedReadTest, ThePeerNamesTheBufferThatIsReadAfterTheFirst) {
  out_.can = false;
  PostSend();
  PostRead();
  Transmit();
  for (const std::optional<uint32_t> expected : {std::optional<uint32_t>(), std::optional<uint32_t>(7)}) {
    const testing::Bytes segment = from_.wire.Take();
    ASSERT_TRUE(Deliver(to_.stream, segment));
    EXPECT_EQ(to_.stream.ReachedTag(segment), expected);
  }
}

class PlainFetchTest : public FetchedReadTest {
 protected:
  PlainFetchTest() : FetchedReadTest(Delivery::kPlain) {}
};

TEST_F(PlainFetchTest, APlainStreamAsksThePeer) {
  PostRead();
  Transmit();
  EXPECT_EQ(out_.fetched, 0);
  EXPECT_EQ(from_.wire.size(), 1u);
}

class PlacedWriteTest : public ::testing::Test {
 protected:
  PlacedWriteTest() { to_.host.AddRegion(kRegion, kBase, kSize); }

  void Post(Opcode opcode, bool has_immediate = false) {
    Request request;
    request.opcode = opcode;
    request.has_immediate = has_immediate;
    request.remote_stag = kRegion;
    request.remote_offset = ddp::TaggedOffset(kBase);
    from_.host.Post(request, Pattern(100));
  }
  // All that waits leaves, and is not heard of by the peer yet.
  void Transmit() {
    from_.stream.Transmit(out_);
    from_.stream.OnTransmitted(from_.wire.appended());
  }
  void Hear() {
    while (!from_.wire.empty()) ASSERT_TRUE(Deliver(to_.stream, from_.wire.Take()));
    to_.stream.Acknowledge();
    Exchange(from_, to_);
  }

  testing::Endpoint from_{{.ord = 4, .delivery = Delivery::kReliable}}, to_{{.ird = 4, .delivery = Delivery::kReliable}};
  PlacingWire out_{from_.wire};
};

TEST_F(PlacedWriteTest, IsCarriedOutWithoutAWordOfThePeer) {
  for (size_t i = 1; i <= 3; ++i) {
    Post(Opcode::kWrite);
    const uint64_t before = from_.stream.answers();
    Transmit();
    EXPECT_EQ(from_.host.sent.size(), i);
    EXPECT_GT(from_.stream.answers(), before) << "the peer is at our requests";
  }
}

TEST_F(PlacedWriteTest, IsNotSentBeforeTheWireLetGoOfIt) {
  Post(Opcode::kWrite);
  from_.stream.Transmit(out_);
  EXPECT_TRUE(from_.host.sent.empty());
  from_.stream.OnTransmitted(from_.wire.appended());
  EXPECT_EQ(from_.host.sent.size(), 1u);
}

TEST_F(PlacedWriteTest, WaitsForWhatIsBeforeItAndNotAcknowledged) {
  to_.host.PostReceive({100});
  Post(Opcode::kSend);
  Post(Opcode::kWrite);
  Transmit();
  EXPECT_TRUE(from_.host.sent.empty());
  Hear();
  EXPECT_EQ(from_.host.sent, (std::vector<int>{0, 1}));
}

TEST_F(PlacedWriteTest, ThePeerMaySayLaterWhatWasAcceptedWithoutIt) {
  Post(Opcode::kWrite);
  Transmit();
  to_.host.PostReceive({100});
  Post(Opcode::kSend);
  Transmit();
  ASSERT_EQ(from_.host.sent.size(), 1u);
  ASSERT_TRUE(Deliver(to_.stream, from_.wire.Take()));
  to_.stream.Acknowledge();  // of the Write alone
  Exchange(to_, from_);
  EXPECT_EQ(from_.stream.state(), StreamState::kOperational);
  EXPECT_EQ(from_.host.sent.size(), 1u);
  Hear();
  EXPECT_EQ(from_.host.sent, (std::vector<int>{0, 1}));
}

TEST_F(PlacedWriteTest, WithImmediateDataThePeerHasToTakeIt) {
  to_.host.PostReceive({0});
  Post(Opcode::kWrite, /*has_immediate=*/true);
  Transmit();
  EXPECT_TRUE(from_.host.sent.empty());
  Hear();
  EXPECT_EQ(from_.host.sent.size(), 1u);
}

TEST_F(PlacedWriteTest, OneThatTheWireDidNotPlaceIsAcknowledged) {
  out_.places = false;
  Post(Opcode::kWrite);
  Transmit();
  EXPECT_TRUE(from_.host.sent.empty());
  Hear();
  EXPECT_EQ(from_.host.sent.size(), 1u);
}

}  // namespace
}  // namespace weft::rdmap
