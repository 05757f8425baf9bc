// Payload that one end writes into the other's memory, or reads there, by itself.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>

#include "wires/host/channel/testing.h"

namespace weft::host {
namespace {

class HostPlacementTest : public HostChannelTest {
 protected:
  void SetUp() override {
    HostChannelTest::SetUp();
    Shake();
    responder_.Send("hello");  // the initiator knows that its memory can be reached, and the other way round
    responder_.channel->Flush();
    initiator_.Receive();
    responder_.sink.buffer.assign(100000, '.');
  }
  // Opened with the first one that is taken.
  void Open() {
    initiator_.Write("first");
    EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
    EXPECT_EQ(responder_.sink.placed, 0);
  }
  std::string Buffer(size_t length) const { return {responder_.sink.buffer.begin(), responder_.sink.buffer.begin() + static_cast<ptrdiff_t>(length)}; }
};

TEST_F(HostPlacementTest, AWriteNeedsNobodyAtTheTarget) {
  Open();
  initiator_.Write("one");
  initiator_.Write("two", 3);
  EXPECT_EQ(Buffer(7), "onetwo.");
  const std::string large(50000, 'l');
  initiator_.Write(large, 7);
  EXPECT_EQ(Buffer(7 + large.size()), "onetwo." + large);
  EXPECT_TRUE(initiator_.channel->empty()) << "its source is the program's again";
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(responder_.sink.placed, 3);
  EXPECT_EQ(responder_.sink.messages.size(), 4u) << "each is heard of";
}

TEST_F(HostPlacementTest, AReadNeedsNobodyAtTheTarget) {
  std::string got(5, '-');
  const iovec piece{got.data(), got.size()};
  const auto fetch = [&](uint64_t offset) { return initiator_.channel->writer().Fetch(Sink::kTag, offset, {&piece, 1}, got.size(), /*alone=*/true); };
  std::memcpy(responder_.sink.buffer.data() + 7, "bytes", 5);
  EXPECT_FALSE(fetch(7)) << "nobody has asked yet";
  initiator_.Send(std::string(Sink::kHeader, 'R'), "which");
  initiator_.channel->Flush();
  EXPECT_FALSE(fetch(7)) << "nor does the peer know";
  responder_.Receive();
  EXPECT_TRUE(fetch(7));
  EXPECT_EQ(got, "bytes");
  EXPECT_FALSE(fetch(responder_.sink.buffer.size() - 4)) << "outside";
  initiator_.Send("something that is to come first");
  initiator_.channel->Flush();
  EXPECT_FALSE(fetch(7));
  responder_.Receive();
  EXPECT_TRUE(fetch(7));
  responder_.channel->Shut();
  EXPECT_FALSE(fetch(7));
}

TEST_F(HostPlacementTest, ManyShortReadsAreThePeersToAnswer) {
  Open();
  std::string got(8192, '-');
  for (const size_t length : {size_t{5}, got.size()}) {
    const iovec piece{got.data(), length};
    EXPECT_EQ(initiator_.channel->writer().Fetch(Sink::kTag, 0, {&piece, 1}, length, /*alone=*/false), length == got.size());
    EXPECT_TRUE(initiator_.channel->writer().Fetch(Sink::kTag, 0, {&piece, 1}, length, /*alone=*/true));
  }
}

TEST_F(HostPlacementTest, ABufferThatMayOnlyBeWrittenIsNotRead) {
  responder_.sink.readable = false;
  Open();
  char byte;
  const iovec piece{&byte, 1};
  EXPECT_FALSE(initiator_.channel->writer().Fetch(Sink::kTag, 0, {&piece, 1}, 1, /*alone=*/true));
  initiator_.Write("but written");
  EXPECT_EQ(Buffer(11), "but written");
}

// The peer's program may find it before the peer looks at the ring.
TEST_F(HostPlacementTest, AWriteThatAcknowledgesIsNotPlacedAhead) {
  Open();
  std::string header(Sink::kHeader, 'W');
  header[1] = 0;
  initiator_.Send(header, "ahead", 0);
  initiator_.channel->Flush();
  EXPECT_TRUE(initiator_.channel->writer().placed()) << "the same one without an acknowledgement";
  responder_.Receive();
  ASSERT_EQ(responder_.sink.placed, 1);
  initiator_.Send(header, "bytes", 1);
  initiator_.channel->Flush();
  EXPECT_FALSE(initiator_.channel->writer().placed());
  EXPECT_EQ(Buffer(5), "ahead");
  responder_.Receive();
  EXPECT_EQ(responder_.sink.placed, 1);
  EXPECT_EQ(responder_.sink.acknowledged.back(), 1);
}

TEST_F(HostPlacementTest, NoneOvertakesWhatIsNotTakenYet) {
  Open();
  initiator_.Send("before");
  initiator_.Write("behind");
  EXPECT_EQ(Buffer(3), "...");
  initiator_.Write(std::string(20000, 'b'));
  EXPECT_EQ(Buffer(3), "...");
  responder_.Receive();
  EXPECT_EQ(responder_.sink.placed, 0);
  initiator_.Write("now");
  EXPECT_EQ(Buffer(3), "now");
}

TEST_F(HostPlacementTest, ShortOnesThatNobodyWaitsForAreSentTogether) {
  Open();
  initiator_.sink.awaited = false;
  initiator_.Write("short");
  EXPECT_EQ(Buffer(5), ".....");
  responder_.Receive();
  initiator_.Write(std::string(20000, 'l'));
  EXPECT_EQ(Buffer(5), "lllll");
}

TEST_F(HostPlacementTest, WhatIsNotInTheBufferGoesTheOrdinaryWay) {
  responder_.sink.buffer.resize(10);
  Open();
  initiator_.Write("abcde", 5);
  EXPECT_EQ(Buffer(10), ".....abcde");
  initiator_.Write("ABCDEF", 5);
  EXPECT_EQ(Buffer(10), ".....abcde");
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(responder_.sink.placed, 1) << "the sink says what is wrong with the other";
}

TEST_F(HostPlacementTest, MemoryThatGoesAwayIsNotWrittenToAndWhatWasIsNoError) {
  Open();
  initiator_.Write("seen");
  responder_.channel->TakeOver(responder_.sink.buffer.data(), 1, nullptr);
  initiator_.Write("late");
  EXPECT_EQ(Buffer(5), "seen.");
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(responder_.sink.placed, 1);
  EXPECT_EQ(responder_.sink.messages.size(), 3u);
}

TEST_F(HostPlacementTest, RightsThatChangeShutAll) {
  Open();
  initiator_.Write("seen");
  EXPECT_EQ(Buffer(5), "seen.");
  responder_.channel->Shut();
  initiator_.Write("late");
  EXPECT_EQ(Buffer(5), "seen.");
}

TEST_F(HostPlacementTest, NothingIsPlacedBehindWhatWasDropped) {
  Open();
  for (const bool drops : {false, true}) {
    responder_.sink.discards = drops;
    initiator_.Send("taken or dropped");
    responder_.Receive();
    initiator_.Write(drops ? "behind" : "seen");
    EXPECT_EQ(Buffer(5), "seen.");
  }
}

TEST_F(HostPlacementTest, NothingIsPlacedOnceTheStreamHasStoppedOrTheChannelIsGone) {
  Open();
  initiator_.Write("seen");
  EXPECT_EQ(Buffer(5), "seen.");
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  responder_.sink.stops = true;
  initiator_.Send("bad");
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kStopped);
  initiator_.Write("late");
  EXPECT_EQ(Buffer(5), "seen.");

  Make({});
  responder_.sink = {};
  Shake();
  responder_.sink.buffer.assign(100, '.');
  Open();
  initiator_.Write("seen");
  responder_.channel.reset();
  initiator_.Write("late");
  EXPECT_EQ(Buffer(5), "seen.");
}

TEST_F(HostPlacementTest, WithoutLeaveToReachMemoryNothingIsPlaced) {
  for (const bool reach : {true, false}) {
    Make({}, reach);
    responder_.sink = {};
    initiator_.sink = {};
    Shake();
    responder_.Send("hello");  // as in SetUp()
    responder_.channel->Flush();
    initiator_.Receive();
    responder_.sink.buffer.assign(100, '.');
    Open();
    initiator_.Write("seen");
    EXPECT_EQ(Buffer(5), reach ? "seen." : ".....");
  }
}

// The peer was stopped between its look at the grant and its system call. It is played by hand: nothing is placed before it goes on.
TEST_F(HostPlacementTest, MemoryIsNotGivenBackWhileThePeerWritesThere) {
  Open();
  control_->by_responder.placing = InUse(HomeOf(Sink::kTag), /*reads=*/false);
  const auto begun = std::chrono::steady_clock::now();
  responder_.channel->TakeOver(responder_.sink.buffer.data(), 1, nullptr);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(100)) << "the call holds the engine's lock and must not wait";
  EXPECT_FALSE(responder_.channel->failed());
  const std::shared_ptr<llp::LentMemory> lent = responder_.channel->lent();
  uint8_t* const memory = responder_.sink.buffer.data();
  const size_t length = responder_.sink.buffer.size();
  EXPECT_FALSE(lent->Settled(memory + 10, 1));
  EXPECT_TRUE(lent->Settled(memory + length, 1)) << "that is other memory";
  initiator_.Write("late");
  EXPECT_EQ(Buffer(4), "....") << "nothing new begins";
  control_->by_responder.placing = InUse(HomeOf(Sink::kTag), /*reads=*/false);

  std::atomic<bool> returned{false};
  std::thread program([&] {
    lent->Await(memory, length);
    returned = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));  // longer than any limit that there was
  EXPECT_FALSE(returned);
  std::memcpy(memory, "slow", 4);  // it goes on
  control_->by_responder.placing = 0;
  program.join();
  EXPECT_EQ(Buffer(4), "slow") << "it was not there before";
  EXPECT_TRUE(lent->Settled(memory, length));
}

TEST_F(HostPlacementTest, ItIsWaitedForWhateverEndsTheChannel) {
  for (const char* const end : {"close", "abort", "destruction", "rights", "exit"}) {
    SCOPED_TRACE(end);
    Make({});
    responder_.sink = {};
    initiator_.sink = {};
    Shake();
    responder_.Send("hello");
    responder_.channel->Flush();
    initiator_.Receive();
    responder_.sink.buffer.assign(100, '.');
    Open();
    const std::shared_ptr<llp::LentMemory> lent = responder_.channel->lent();
    control_->by_responder.placing = InUse(HomeOf(Sink::kTag), /*reads=*/false);
    const std::string how = end;
    if (how == "close") responder_.channel->Close([](llp::UlpduWriter&) {});
    if (how == "abort") responder_.channel->Abort();
    if (how == "rights") responder_.channel->Shut();
    if (how == "exit") responder_.channel->OnExit();
    if (how == "close" || how == "abort" || how == "destruction") responder_.channel.reset();
    EXPECT_FALSE(lent->Settled(nullptr, SIZE_MAX));
    control_->by_responder.placing = 0;
    EXPECT_TRUE(lent->Settled(nullptr, SIZE_MAX));
    initiator_.Write("late");
    EXPECT_EQ(Buffer(4), "....");
  }
}

TEST_F(HostPlacementTest, ASendWhosePayloadWouldBePlacedIsRefused) {
  Open();
  initiator_.Write("placed");
  auto* rings = reinterpret_cast<uint8_t*>(control_) + 4096;
  for (size_t line = 0; line < 8; ++line) {
    auto* head = reinterpret_cast<RecordHead*>(rings + line * kLine);
    if (head->kind == static_cast<uint8_t>(Kind::kPlaced)) *reinterpret_cast<char*>(head + 1) = 'h';
  }
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kStopped);
  EXPECT_EQ(received.broken, llp::Error::kMisframed);
}

}  // namespace
}  // namespace weft::host
