#include "faults/stream.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/log.h"
#include "sim/net/virtual_network.h"

namespace weft::faults {
namespace {

using sim::VirtualNetwork;
using transport::IoResult;
using transport::SocketAddress;
using Result = IoResult::Kind;
using namespace std::chrono_literals;

// Two connections between two ends in virtual time; the faults are at the initiator's end of the first, queue pair 1.
class FaultyStreamTest : public testing::Test {
 protected:
  void SetUp() override { SilenceWarnings(true); }
  void TearDown() override { Injector::Process().Clear(); }

  void Open(const std::string& faults, ConnectionInfo info = {.qp = 1, .device = "weft_lo", .crc = true}, StartUp start_up = {}) {
    Injector::Process().Set(*Parse(faults));
    auto listener = network.Listen(*SocketAddress::Parse("10.0.0.1", 7), 5, false, true).value();
    auto inner = network.StartConnect(*SocketAddress::Parse("10.0.0.2", 0), *SocketAddress::Parse("10.0.0.1", 7)).value();
    network.RunUntilIdle();
    theirs = listener->Accept().value();
    started = network.Now();
    ours = std::make_unique<FaultyStream>(std::move(inner), std::move(info), start_up, network, [this] {
      ++wakes;
      char byte;
      iovec piece{&byte, 1};
      const IoResult result = ours->Read({&piece, 1});
      if (result.kind == Result::kEndOfStream || result.kind == Result::kFailed) ended = result;
    });
  }
  IoResult Write(transport::ByteStream& stream, const std::string& text) {
    iovec piece{const_cast<char*>(text.data()), text.size()};
    return stream.Write({&piece, 1});
  }
  // All that can be read now; the end is in `end_seen`.
  std::string ReadAll(transport::ByteStream& stream) {
    std::string all;
    char buffer[1000];
    for (;;) {
      iovec piece{buffer, sizeof buffer};
      const IoResult result = stream.Read({&piece, 1});
      end_seen = result;
      if (result.kind != Result::kDone) return all;
      all.append(buffer, result.bytes);
    }
  }
  void Settle() { network.RunFor(100us); }

  VirtualNetwork network{1};
  std::unique_ptr<FaultyStream> ours;
  std::unique_ptr<transport::ByteStream> theirs;
  transport::Time started;
  IoResult end_seen, ended;
  int wakes = 0;
};

TEST_F(FaultyStreamTest, WithoutFaultsItIsTheStream) {
  Open("");
  EXPECT_EQ(Write(*ours, "hello").bytes, 5u);
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "hello");
  Write(*theirs, "back");
  Settle();
  EXPECT_EQ(ReadAll(*ours), "back");
  EXPECT_EQ(wakes, 0);
  EXPECT_FALSE(ConcernsConnection({.qp = 1}, ours->PeerAddress()));
}

TEST_F(FaultyStreamTest, CutEndsBothDirectionsAtTheByte) {
  Open("cut after_bytes=10 qp=1");
  EXPECT_TRUE(ConcernsConnection({.qp = 1}, ours->PeerAddress()));
  EXPECT_FALSE(ConcernsConnection({.qp = 2}, ours->PeerAddress()));
  Write(*theirs, "abcd");
  Settle();
  EXPECT_EQ(ReadAll(*ours), "abcd");
  EXPECT_EQ(Write(*ours, "0123456789").bytes, 6u);
  EXPECT_EQ(Write(*ours, "6789").error, EPIPE);
  EXPECT_EQ(ReadAll(*ours), "");
  EXPECT_EQ(end_seen.kind, Result::kEndOfStream);
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "012345");
  EXPECT_EQ(end_seen.kind, Result::kEndOfStream);
  std::vector<uint8_t> rest{1, 2};
  EXPECT_NE(ours->Release(rest), nullptr);
  EXPECT_TRUE(rest.empty());
}

TEST_F(FaultyStreamTest, CutWhileReadingIsAtTheByteToo) {
  Open("cut after_bytes=3");
  Write(*theirs, "abcdef");
  Settle();
  EXPECT_EQ(ReadAll(*ours), "abc");
  EXPECT_EQ(end_seen.kind, Result::kEndOfStream);
}

TEST_F(FaultyStreamTest, CutAfterATimeWakesTheOwner) {
  Open("cut after=30ms");
  network.RunFor(29ms);
  EXPECT_EQ(ended.kind, Result::kWouldBlock);
  network.RunFor(2ms);
  EXPECT_EQ(ended.kind, Result::kEndOfStream);
  EXPECT_EQ(ReadAll(*theirs), "");
  EXPECT_EQ(end_seen.kind, Result::kEndOfStream);
}

TEST_F(FaultyStreamTest, ResetIsSeenAsOneAtBothEnds) {
  Open("reset after_bytes=4");
  EXPECT_EQ(Write(*ours, "01234567").bytes, 4u);
  EXPECT_EQ(Write(*ours, "4567").error, ECONNRESET);
  Settle();
  ReadAll(*theirs);
  EXPECT_EQ(end_seen.error, ECONNRESET);
}

TEST_F(FaultyStreamTest, BlackholeHoldsEverythingAndHealsWithoutLoss) {
  Open("blackhole after=1ms for=1s");
  Write(*theirs, "early");
  network.RunFor(2ms);
  EXPECT_FALSE(ours->wants_read());
  EXPECT_FALSE(ours->wants_write(true));
  EXPECT_EQ(Write(*ours, "held").bytes, 4u);
  Write(*theirs, "also held");
  network.RunFor(500ms);
  EXPECT_EQ(ReadAll(*theirs), "");
  EXPECT_EQ(end_seen.kind, Result::kWouldBlock);
  network.RunFor(600ms);
  EXPECT_TRUE(ours->wants_read());
  EXPECT_EQ(ReadAll(*theirs), "held");
  EXPECT_EQ("e" + ReadAll(*ours), "early" "also held");  // the wakes took a byte each
}

TEST_F(FaultyStreamTest, BlackholeTakesNoMoreThanASocket) {
  Open("blackhole");
  const std::string much(100'000, 'x');
  size_t taken = 0;
  for (;;) {
    const IoResult result = Write(*ours, much);
    if (result.kind != Result::kDone) break;
    taken += result.bytes;
  }
  EXPECT_EQ(taken, 256u << 10);
}

TEST_F(FaultyStreamTest, WhoGivesABlackholeUpFailsAndTellsNobody) {
  Open("blackhole give_up=2s");
  Write(*ours, "lost");
  network.RunFor(1900ms);
  EXPECT_EQ(ended.kind, Result::kWouldBlock);
  network.RunFor(200ms);
  EXPECT_EQ(ended.error, ETIMEDOUT);
  std::vector<uint8_t> rest;
  EXPECT_EQ(ours->Release(rest), nullptr);
  ours.reset();
  network.RunFor(10s);
  EXPECT_EQ(ReadAll(*theirs), "");
  EXPECT_EQ(end_seen.kind, Result::kWouldBlock);
}

TEST_F(FaultyStreamTest, DelayKeepsOrderAndLosesNothing) {
  Open("delay time=5ms jitter=3ms; seed=4");
  std::string all;
  for (int i = 0; i < 100; ++i) {
    const std::string text = std::to_string(i) + " ";
    all += text;
    EXPECT_EQ(Write(*ours, text).bytes, text.size());
    network.RunFor(100us);
  }
  ours->ShutdownWrite();
  network.RunFor(20ms);
  EXPECT_EQ(ReadAll(*theirs), all);
  EXPECT_EQ(end_seen.kind, Result::kEndOfStream);
}

TEST_F(FaultyStreamTest, DelayedBytesComeWhenTheyAreDue) {
  Open("delay time=5ms");
  Write(*ours, "late");
  network.RunFor(4900us);
  EXPECT_EQ(ReadAll(*theirs), "");
  network.RunFor(200us);
  EXPECT_EQ(ReadAll(*theirs), "late");
}

TEST_F(FaultyStreamTest, ReleaseHandsOverWhatIsStillDelayed) {
  Open("delay time=5ms");
  Write(*ours, "abc");
  std::vector<uint8_t> rest{'d'};
  auto inner = ours->Release(rest);
  ASSERT_NE(inner, nullptr);
  EXPECT_EQ(std::string(rest.begin(), rest.end()), "abcd");
}

TEST_F(FaultyStreamTest, BandwidthIsTheRate) {
  Open("bandwidth rate=8mbit");  // a megabyte a second
  const std::string piece(10'000, 'x');
  size_t written = 0, arrived = 0;
  while (network.Now() - started < 200ms) {
    if (const IoResult result = Write(*ours, piece); result.kind == Result::kDone) written += result.bytes;
    network.RunFor(1ms);
    arrived += ReadAll(*theirs).size();
  }
  EXPECT_NEAR(static_cast<double>(arrived), 200'000, 10'000);
  EXPECT_GE(written, arrived);
}

TEST_F(FaultyStreamTest, CorruptInvertsOneBitOfTheLastByteOfAWrite) {
  Open("corrupt nth=2");
  Write(*ours, "aaaa");
  Write(*ours, "bbbb");
  Write(*ours, "cccc");
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "aaaabbbccccc");
}

TEST_F(FaultyStreamTest, CorruptLeavesAConnectionWithoutCrcAlone) {
  Open("corrupt", {.qp = 1, .device = "weft_lo", .crc = false});
  Write(*ours, "aaaa");
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "aaaa");
}

TEST_F(FaultyStreamTest, CorruptWorksOnWhatIsDelayed) {
  Open("corrupt; delay time=1ms");
  Write(*ours, "aaaa");
  Write(*ours, "cccc");
  network.RunFor(3ms);
  EXPECT_EQ(ReadAll(*theirs), "aaa`cccc");
}

TEST_F(FaultyStreamTest, StartUpBytesAreNeitherTouchedNorCounted) {
  Open("cut after_bytes=2; corrupt", {.qp = 1, .device = "weft_lo", .crc = true}, {.bytes = 5});
  EXPECT_EQ(Write(*ours, "reply").bytes, 5u);
  EXPECT_EQ(Write(*ours, "abc").bytes, 2u);
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "replyab");
}

TEST_F(FaultyStreamTest, TheFirstWriteCanBeStartUp) {
  Open("cut after_bytes=2; corrupt", {.qp = 1, .device = "weft_lo", .crc = true}, {.first_write = true});
  EXPECT_EQ(Write(*ours, "ready").bytes, 5u);
  EXPECT_EQ(Write(*ours, "abc").bytes, 2u);
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "readyab");
}

TEST_F(FaultyStreamTest, ChangesWhileItRuns) {
  Open("blackhole");
  Write(*ours, "held");
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "");
  Injector::Process().Clear();
  ours->Reselect();
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "held");
  Injector::Process().Set(*Parse("reset"));
  ours->Reselect();
  Settle();
  ReadAll(*theirs);
  EXPECT_EQ(end_seen.error, ECONNRESET);
}

TEST_F(FaultyStreamTest, APortThatIsDownHoldsItsConnections) {
  Open("");
  SetPortDown("weft_lo", true);
  ours->Reselect();
  Write(*ours, "held");
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "");
  SetPortDown("weft_lo", false);
  ours->Reselect();
  Settle();
  EXPECT_EQ(ReadAll(*theirs), "held");
}

TEST_F(FaultyStreamTest, OneOfSeveralConnectionsIsChosen) {
  Open("reset nth=2; seed=1");
  EXPECT_EQ(Write(*ours, "fine").bytes, 4u);
  ours->Reselect();
  EXPECT_EQ(Write(*ours, "gone").error, ECONNRESET);
}

}  // namespace
}  // namespace weft::faults
