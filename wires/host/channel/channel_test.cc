#include "wires/host/channel/channel.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/program_memory.h"
#include "transport/tcp_network.h"

namespace weft::host {
namespace {

using llp::Flushed;
using llp::Received;

bool CopyAll(uint8_t* to, const uint8_t* from, size_t count) {
  std::memcpy(to, from, count);
  return true;
}
bool FindNothing(uint8_t*, const uint8_t*, size_t) { return false; }

// In the place of MPA over TCP: takes ULPDUs, and ends when it is told to.
class FakeTcp final : public llp::Channel, private llp::UlpduWriter {
 public:
  void Start(llp::UlpduSink&, std::weak_ptr<llp::ChannelUser>) override {}
  bool ReadyToSend() override { return true; }
  bool may_send() const override { return true; }
  llp::UlpduWriter& writer() override { return *this; }
  Flushed Flush() override { return {}; }
  uint64_t consumed() const override { return count; }
  bool empty() const override { return true; }
  bool failed() const override { return false; }
  void TakeOver(const void*, size_t, Copy) override {}
  Received Receive(unsigned) override { return std::exchange(next, Received{}); }
  bool in_ulpdu() const override { return false; }
  void DivertPlacement() override {}
  transport::WatchId Watch(std::shared_ptr<transport::ReadyHandler> handler) override { return ready = std::move(handler), 1; }
  void UpdateInterest() override {}
  bool quiet() const override { return true; }
  void EndOutput() override {}
  void Close(const std::function<void(llp::UlpduWriter&)>&) override { closed = true; }
  void Abort() override { aborted = true; }
  transport::SocketAddress PeerAddress() const override { return {}; }
  void Annotate(const std::string&) override {}
  std::string Describe() const override { return "fake"; }
  const char* wire() const override { return "tcp"; }

  void Ends(Received how) {
    next = how;
    ready->OnReady({.read = true});
  }

  size_t max_ulpdu() const override { return 1000; }
  bool HasRoom(size_t, size_t) const override { return true; }
  void Append(ByteSpan header, std::span<const iovec>, bool) override {
    count += header.size();
    ++ulpdus;
  }
  uint64_t appended() const override { return count; }

  Received next;
  std::shared_ptr<transport::ReadyHandler> ready;
  uint64_t count = 0;
  int ulpdus = 0;
  bool closed = false, aborted = false;
};

// Keeps what comes; places payload in memory of its own, in two pieces.
class Sink final : public llp::UlpduSink {
 public:
  bool Begin(size_t length, ByteSpan head, llp::UlpduPlan* plan) override {
    if (stops) return false;
    plan->header_length = kHeader;
    plan->discard = discards;
    placed += plan->placed;
    acknowledged.push_back(plan->acknowledged);
    message.assign(head.begin(), head.begin() + kHeader);
    payload.assign(length - kHeader, 0);
    const size_t half = payload.size() / 2;
    pieces[0] = {payload.data(), half};
    pieces[1] = {payload.data() + half, payload.size() - half};
    if (nowhere) pieces[0] = {reinterpret_cast<void*>(8), half};
    plan->payload = pieces;
    if (in_the_middle) std::exchange(in_the_middle, nullptr)();
    return true;
  }
  void OnUnplaceable() override { unplaceable = true; }
  bool End() override {
    if (unplaceable) return false;
    message.append(payload.begin(), payload.end());
    messages.push_back(message);
    return true;
  }
  void OnTransmitted(uint64_t position) override { transmitted = position; }
  // A header that begins with 'W' writes at the offset that its next byte says.
  std::optional<llp::TaggedPlacement> PlacementOf(ByteSpan header) const override {
    if (header[0] != 'W') return std::nullopt;
    return llp::TaggedPlacement{.tag = kTag, .offset = header[1], .awaited = awaited};
  }
  // One with 'R' reads.
  std::optional<uint32_t> ReachedTag(ByteSpan header) const override {
    return header[0] == 'W' || header[0] == 'R' ? std::optional(kTag) : std::nullopt;
  }
  std::optional<llp::TaggedBuffer> OpenBuffer(uint32_t tag) override {
    EXPECT_EQ(tag, kTag);
    if (buffer.empty()) return std::nullopt;
    return llp::TaggedBuffer{.tag = tag, .offset = 0, .memory = buffer.data(), .length = buffer.size(), .writable = true, .readable = readable};
  }

  static constexpr size_t kHeader = 14;
  static constexpr uint32_t kTag = 0x1234;
  std::vector<uint8_t> buffer;  // open to the peer, if there is one
  int placed = 0;               // ULPDUs whose payload the peer had placed
  std::vector<int> acknowledged;  // beside each ULPDU
  bool stops = false, discards = false, unplaceable = false, awaited = true, readable = true;
  bool nowhere = false;                  // memory that is not there is named
  std::function<void()> in_the_middle;   // called once, before the payload is placed
  uint64_t transmitted = 0;
  std::string message;
  std::vector<uint8_t> payload;
  iovec pieces[2];
  std::vector<std::string> messages;
};

struct Handler final : transport::ReadyHandler, llp::ChannelUser {
  void OnReady(transport::Interest) override { Call(); }
  void OnWake() override { Call(); }
  void Call() {
    std::lock_guard lock(mutex);
    ++calls;
    changed.notify_all();
  }
  bool Await(int count) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, std::chrono::seconds(20), [&] { return calls >= count; });
  }
  int Calls() {
    std::lock_guard lock(mutex);
    return calls;
  }

  std::mutex mutex;
  std::condition_variable changed;
  int calls = 0;  // guarded
};

struct End {
  FakeTcp* tcp;
  Sink sink;
  std::shared_ptr<Handler> handler = std::make_shared<Handler>();
  std::unique_ptr<Channel> channel;

  void Send(const std::string& payload) { Send(std::string(Sink::kHeader, 'h'), payload); }
  void Write(const std::string& payload, uint8_t offset = 0) {
    std::string header(Sink::kHeader, 'W');
    header[1] = static_cast<char>(offset);
    Send(header, payload);
    channel->Flush();
  }
  void Send(const std::string& header, const std::string& payload, uint8_t acknowledged = 0) {
    iovec piece{const_cast<char*>(payload.data()), payload.size()};
    ASSERT_TRUE(channel->ReadyToSend());
    ASSERT_GT(channel->writer().max_ulpdu(), payload.size() < 8192 ? 100 : payload.size());
    ASSERT_TRUE(channel->writer().HasRoom(payload.size(), 1));
    channel->writer().AppendAcknowledging({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false, acknowledged);
  }
  Received Receive() { return channel->Receive(32); }
};

// After Hold() no timer runs: the watchman does not find that the program polls no more, however long the test loses its processor.
class HeldTimers final : public transport::TcpNetwork {
 public:
  void Hold() { holds_ = true; }
  transport::TimerId RunAt(transport::Time when, std::function<void()> work) override { return holds_ ? 0 : TcpNetwork::RunAt(when, std::move(work)); }

 private:
  std::atomic<bool> holds_{false};
};

class HostChannelTest : public testing::Test {
 protected:
  void SetUp() override { Make({}); }

  void Make(std::function<bool()> needs_tcp, bool reach = true) {
    const auto invitation = point_.Invite();
    ASSERT_TRUE(invitation);
    auto visitor = MeetingPoint::Visit(*invitation);
    auto host = point_.Collect(*invitation);
    ASSERT_TRUE(visitor && host);
    control_ = &visitor->memory->control();
    MakeEnd(responder_, std::move(visitor), {.initiator = false, .reach = reach});
    MakeEnd(initiator_, std::move(host), {.initiator = true, .reach = reach, .needs_tcp = std::move(needs_tcp)});
  }
  void MakeEnd(End& end, std::unique_ptr<Met> met, ChannelOptions options) {
    auto tcp = std::make_unique<FakeTcp>();
    end.tcp = tcp.get();
    end.channel = std::make_unique<Channel>(network_, std::move(tcp), std::move(met), std::move(options));
    end.channel->Start(end.sink, end.handler);
    end.channel->Watch(end.handler);
  }
  // Both know each other's ways.
  void Shake() {
    initiator_.Send("hello");
    EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kAll);
    EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
    responder_.sink.messages.clear();
  }
  static std::string Message(const std::string& payload) { return std::string(Sink::kHeader, 'h') + payload; }

  HeldTimers network_;
  MeetingPoint point_;
  ControlPage* control_ = nullptr;
  End initiator_, responder_;
};

TEST_F(HostChannelTest, UlpdusComeInOrderBothWays) {
  Shake();
  std::vector<std::string> expected;
  for (const size_t length : {0, 1, 100, 5000, 8191, 8192, 20000, 60000, 3}) {
    const std::string payload(length, static_cast<char>('a' + expected.size()));
    initiator_.Send(payload);
    initiator_.channel->Flush();
    responder_.Receive();
    initiator_.channel->Flush();
    expected.push_back(Message(payload));
  }
  EXPECT_TRUE(responder_.sink.messages == expected);
  responder_.Send("back");
  responder_.channel->Flush();
  EXPECT_EQ(initiator_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(initiator_.sink.messages, std::vector{Message("back")});
  EXPECT_STREQ(initiator_.channel->wire(), "host");
  EXPECT_STREQ(responder_.channel->wire(), "host");
}

TEST_F(HostChannelTest, AcknowledgementsComeBesideUlpdus) {
  Shake();
  responder_.sink.acknowledged.clear();
  EXPECT_TRUE(initiator_.channel->writer().CarriesAcknowledgements());
  const std::string header(Sink::kHeader, 'h'), payload(50000, 'p');
  for (const int acknowledged : {3, 0, 255, 1}) initiator_.Send(header, acknowledged == 1 ? payload : "short", static_cast<uint8_t>(acknowledged));
  initiator_.channel->Flush();
  responder_.Receive();
  EXPECT_EQ(responder_.sink.acknowledged, (std::vector{3, 0, 255, 1}));
}

TEST_F(HostChannelTest, EachSeesWhatTheOtherHasCarriedOutWithoutBeingTold) {
  EXPECT_EQ(initiator_.channel->CarriedOutByPeer(), 0u);
  ASSERT_NE(responder_.channel->CarriedOutHere(), nullptr);
  ASSERT_NE(initiator_.channel->CarriedOutHere(), nullptr);
  responder_.channel->CarriedOutHere()->store(7);
  initiator_.channel->CarriedOutHere()->store(9);
  responder_.channel->Abort();
  EXPECT_EQ(initiator_.channel->CarriedOutByPeer(), 7u);
  EXPECT_EQ(responder_.channel->CarriedOutByPeer(), 9u);
}

TEST_F(HostChannelTest, WhoPollsSaysWhatItIsThroughWithWhenItFindsNothing) {
  network_.Hold();
  Shake();
  responder_.channel->Lend();
  initiator_.Send("one");
  initiator_.channel->Flush();
  const uint64_t before = control_->to_responder.tail.load();
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(control_->to_responder.tail.load(), before) << "the program has its message first";
  EXPECT_FALSE(responder_.channel->idle());
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
  EXPECT_GT(control_->to_responder.tail.load(), before);
  EXPECT_TRUE(responder_.channel->idle());
  responder_.channel->EndLend();
  EXPECT_FALSE(responder_.channel->idle()) << "it is to ask for the bell";
}

TEST_F(HostChannelTest, APollerIsIdleWhileThereIsNothingToDo) {
  network_.Hold();
  Shake();
  responder_.channel->Lend();
  responder_.Receive();
  ASSERT_TRUE(responder_.channel->idle());
  initiator_.Send("one");
  EXPECT_FALSE(responder_.channel->idle());
  responder_.Receive();
  responder_.Receive();
  ASSERT_TRUE(responder_.channel->idle());
  responder_.tcp->Ends({.kind = Received::Kind::kEnded});
  EXPECT_FALSE(responder_.channel->idle());
}

TEST_F(HostChannelTest, ALongPayloadIsNotOutBeforeItIsRead) {
  Shake();
  const std::string payload(50000, 'p');
  const uint64_t before = initiator_.channel->consumed();
  initiator_.Send(payload);
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kBlocked);
  EXPECT_EQ(initiator_.channel->consumed(), before);
  responder_.Receive();
  const Flushed flushed = initiator_.channel->Flush();
  EXPECT_EQ(flushed.kind, Flushed::Kind::kAll);
  EXPECT_GT(flushed.bytes, payload.size());
  EXPECT_GT(initiator_.channel->consumed(), before + payload.size());
}

TEST_F(HostChannelTest, AnAnswerIsHeardAfterItsQuestionWasSent) {
  Shake();
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  responder_.Receive();
  responder_.Send("answer");
  responder_.channel->Flush();
  initiator_.sink.stops = true;  // from the answer on
  initiator_.Receive();
  EXPECT_GT(initiator_.sink.transmitted, payload.size());
}

TEST_F(HostChannelTest, MemoryThatGoesAwayIsSentAsItWas) {
  Shake();
  std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  initiator_.channel->TakeOver(payload.data() + 100, 1, CopyAll);
  const std::string expected = Message(payload);
  payload.assign(payload.size(), 'x');
  responder_.Receive();
  EXPECT_TRUE(responder_.sink.messages == std::vector{expected});
}

TEST_F(HostChannelTest, WhatWasReferencedOutlivesTheChannel) {
  Shake();
  auto payload = std::make_unique<std::string>(50000, 'p');
  const std::string expected = Message(*payload);
  initiator_.Send(*payload);
  initiator_.channel->Flush();
  initiator_.channel->Close([](llp::UlpduWriter&) {});
  initiator_.channel.reset();
  payload->assign(payload->size(), 'x');
  payload.reset();
  responder_.tcp->Ends({.kind = Received::Kind::kEnded});
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_TRUE(responder_.sink.messages == std::vector{expected});
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kEnded);
}

TEST_F(HostChannelTest, AMessageOf64KibIsOneUlpdu) {
  Make({});
  Shake();
  EXPECT_GE(initiator_.channel->writer().max_ulpdu(), size_t{64 * 1024 + 18});  // an untagged header, which is the longer one
}

TEST_F(HostChannelTest, WithoutLeaveToReadMemoryAllGoesThroughTheRing) {
  Make({}, /*reach=*/false);
  Shake();
  EXPECT_EQ(initiator_.channel->writer().max_ulpdu(), kMostCopied);
  std::string all;
  for (int i = 0; i < 40; ++i) {
    const std::string payload(16000, static_cast<char>('a' + i % 26));
    if (!initiator_.channel->writer().HasRoom(payload.size(), 1)) {
      EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kBlocked);
      responder_.Receive();
    }
    initiator_.Send(payload);
    initiator_.channel->Flush();
  }
  responder_.Receive();
  EXPECT_EQ(responder_.sink.messages.size(), 40u);
}

TEST_F(HostChannelTest, WhoWaitsForRoomIsWoken) {
  Shake();
  const std::string payload(1000, 'p');
  while (initiator_.channel->writer().HasRoom(payload.size(), 1)) initiator_.Send(payload);
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kBlocked);
  EXPECT_FALSE(initiator_.channel->quiet());
  const int before = initiator_.handler->Calls();
  responder_.Receive();
  EXPECT_TRUE(initiator_.handler->Await(before + 1));
  EXPECT_TRUE(initiator_.channel->ReadyToSend());
  EXPECT_TRUE(initiator_.channel->writer().HasRoom(payload.size(), 1));
}

TEST_F(HostChannelTest, WhoSleepsIsWokenAndWhoPollsIsNot) {
  Shake();
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
  initiator_.Send("one");
  initiator_.channel->Flush();
  EXPECT_TRUE(responder_.handler->Await(1));
  responder_.Receive();
  responder_.channel->Lend();
  EXPECT_EQ(control_->to_responder.wants_data.load(), 0u);
  initiator_.Send("two");
  initiator_.channel->Flush();
  // It polls no more: the watchman says so, and the next look asks for the bell.
  for (int calls = 0; control_->to_responder.wants_data.load() == 0 && responder_.handler->Await(calls); ++calls) responder_.Receive();
  EXPECT_EQ(responder_.sink.messages.size(), 2u);
  EXPECT_EQ(control_->to_responder.wants_data.load(), 1u);
}

TEST_F(HostChannelTest, TwoThatPollOnOneProcessorKnow) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  Shake();
  initiator_.Send("answer me");
  responder_.Receive();
  constexpr int kMany = 100;
  const auto share = [&] {
    bool shares = false;
    for (int i = 0; i < kMany; ++i) shares = initiator_.channel->Lend();
    return shares;
  };
  EXPECT_FALSE(share());  // the other does not poll
  responder_.channel->Lend();
  EXPECT_TRUE(share());
  control_->responder_polls_on.fetch_add(1);
  EXPECT_FALSE(share());  // ... on this one
  control_->responder_polls_on.fetch_sub(1);
  EXPECT_TRUE(share());
  responder_.channel->EndLend();
  EXPECT_FALSE(share());
  sched_setaffinity(0, sizeof(before), &before);
}

TEST_F(HostChannelTest, TheEndIsHeardBehindWhatWasSent) {
  Shake();
  initiator_.Send("last");
  initiator_.channel->Flush();
  responder_.tcp->Ends({.kind = Received::Kind::kFailed, .error = ECONNRESET});
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  const Received end = responder_.Receive();
  EXPECT_EQ(end.kind, Received::Kind::kFailed);
  EXPECT_EQ(end.error, ECONNRESET);
  EXPECT_EQ(responder_.sink.messages, std::vector{Message("last")});
}

TEST_F(HostChannelTest, AnInitiatorThatDoesNotJoinKeepsBothOnTcp) {
  Make([] { return true; });
  EXPECT_STREQ(initiator_.channel->wire(), "tcp");
  responder_.tcp->next = {.kind = Received::Kind::kSome, .bytes = 20};
  EXPECT_EQ(responder_.Receive().bytes, 20u);
  EXPECT_STREQ(responder_.channel->wire(), "tcp");
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
}

TEST_F(HostChannelTest, AFaultMovesBothDirectionsToTcp) {
  bool needed = false;
  Make([&] { return needed; });
  Shake();
  initiator_.Send("before");
  needed = true;
  initiator_.channel->ApplyFaults();
  EXPECT_STREQ(initiator_.channel->wire(), "tcp");
  initiator_.Send("after");
  EXPECT_EQ(initiator_.tcp->ulpdus, 1);
  responder_.Receive();
  EXPECT_EQ(responder_.sink.messages, std::vector{Message("before")});
  EXPECT_STREQ(responder_.channel->wire(), "tcp") << "it was asked to";
  responder_.Send("answer");
  EXPECT_EQ(responder_.tcp->ulpdus, 1);
  initiator_.Receive();
  initiator_.tcp->next = {.kind = Received::Kind::kSome, .bytes = 7};
  EXPECT_EQ(initiator_.Receive().bytes, 7u);
}

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

TEST_F(HostChannelTest, APeerThatWritesNonsenseEndsTheStream) {
  Shake();
  initiator_.Send("a");
  // Its record's kind, behind our back.
  auto* rings = reinterpret_cast<uint8_t*>(control_) + 4096;
  for (size_t line = 0; line < 4; ++line) reinterpret_cast<RecordHead*>(rings + line * kLine)->kind = 77;
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kStopped);
  EXPECT_EQ(received.broken, llp::Error::kMisframed);
}

TEST_F(HostChannelTest, AConsumerThatLiesAboutItsTailEndsTheStream) {
  Shake();
  control_->to_responder.tail.store(1u << 20);
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kFailed);
  EXPECT_TRUE(initiator_.channel->failed());
  EXPECT_EQ(initiator_.Receive().kind, Received::Kind::kFailed);
}

// A peer whose ring says something else than it knows itself: nothing comes but what it sends in the end.
TEST_F(HostChannelTest, APayloadThatIsNotWhereTheRingSaysIsAskedFor) {
  Shake();
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  auto* rings = reinterpret_cast<uint8_t*>(control_) + 4096;
  int changed = 0;
  for (size_t line = 0; line < 8; ++line) {
    auto* head = reinterpret_cast<RecordHead*>(rings + line * kLine);
    if (head->kind != static_cast<uint8_t>(Kind::kReference)) continue;
    reinterpret_cast<Reference*>(head + 1)->pieces[0].address = 8;
    ++changed;
  }
  ASSERT_EQ(changed, 1);
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
  EXPECT_TRUE(responder_.sink.messages.empty());
  EXPECT_FALSE(responder_.sink.unplaceable);
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (responder_.sink.messages.empty() && std::chrono::steady_clock::now() < until) {
    initiator_.Receive();
    ASSERT_NE(responder_.Receive().kind, Received::Kind::kFailed);
    std::this_thread::yield();
  }
  EXPECT_TRUE(responder_.sink.messages == std::vector{Message(payload)});
}

Reference* OldestReference(ControlPage* control) {
  auto* rings = reinterpret_cast<uint8_t*>(control) + 4096;
  for (size_t line = 0; line < 8; ++line) {
    auto* head = reinterpret_cast<RecordHead*>(rings + line * kLine);
    if (head->kind == static_cast<uint8_t>(Kind::kReference)) return reinterpret_cast<Reference*>(head + 1);
  }
  return nullptr;
}

// A reader that was stopped before its system call reads what the program has written since. It throws that away.
TEST_F(HostChannelTest, WhatIsReadAfterItWasTakenBackIsNotReceived) {
  Shake();
  std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  responder_.sink.in_the_middle = [&] {  // between its claim and its copy
    initiator_.channel->TakeOver(payload.data(), payload.size(), CopyAll);
    EXPECT_TRUE(initiator_.channel->failed());
    payload.assign(payload.size(), 'x');
  };
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kFailed);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

TEST_F(HostChannelTest, NothingOfAnAbortedStreamIsReadAfterwards) {
  for (const bool destroyed : {false, true}) {
    Make({});
    responder_.sink = {};
    Shake();
    initiator_.Send("short");
    auto payload = std::make_unique<std::string>(50000, 'p'), second = std::make_unique<std::string>(50000, 'q');
    initiator_.Send(*payload);
    initiator_.Send(*second);
    initiator_.channel->Flush();
    if (destroyed) {
      initiator_.channel.reset();
    } else {
      initiator_.channel->Abort();
    }
    payload->assign(payload->size(), 'x');
    second->assign(second->size(), 'x');
    Received received = responder_.Receive();
    if (received.kind == Received::Kind::kSome) received = responder_.Receive();
    EXPECT_EQ(received.kind, Received::Kind::kFailed);
    EXPECT_EQ(received.error, ECONNRESET);
    EXPECT_TRUE(responder_.sink.messages == std::vector{Message("short")}) << "what was before it came";
  }
}

TEST_F(HostChannelTest, MemoryThatIsGoneIsNotSentAsSomethingElse) {
  Shake();
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  initiator_.channel->TakeOver(payload.data(), payload.size(), FindNothing);
  EXPECT_TRUE(initiator_.channel->payload_gone());
  EXPECT_TRUE(initiator_.channel->failed());
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kFailed);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

TEST_F(HostChannelTest, ClosingSurvivesMemoryThatIsGone) {
  Shake();
  const size_t length = 65536;
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const iovec piece{memory, 50000};
  ASSERT_EQ(initiator_.channel->writer().max_ulpdu(), kMostUlpdu) << "it is referenced";
  ASSERT_TRUE(initiator_.channel->writer().HasRoom(piece.iov_len, 1));
  const std::string header(Sink::kHeader, 'h');
  initiator_.channel->writer().Append({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false);
  initiator_.channel->Flush();
  ASSERT_EQ(munmap(memory, length), 0);
  initiator_.channel->Close([](llp::UlpduWriter&) {});
  initiator_.channel.reset();
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kFailed);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

// The consumer finds it first. It is the sender's error all the same, as of an adapter that cannot read what it is to send.
TEST_F(HostChannelTest, AReferencedPayloadThatIsGoneIsTheSendersError) {
  Shake();
  const size_t length = 65536;
  void* const memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const iovec piece{memory, 50000};
  ASSERT_EQ(initiator_.channel->writer().max_ulpdu(), kMostUlpdu) << "it is referenced";
  ASSERT_TRUE(initiator_.channel->writer().HasRoom(piece.iov_len, 1));
  const std::string header(Sink::kHeader, 'h');
  initiator_.channel->writer().Append({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false);
  initiator_.channel->Flush();
  ASSERT_EQ(munmap(memory, length), 0);
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing) << "it asks for what it cannot read";
  EXPECT_FALSE(initiator_.channel->payload_gone());
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!initiator_.channel->payload_gone() && std::chrono::steady_clock::now() < until) {
    ASSERT_NE(initiator_.Receive().kind, Received::Kind::kFailed);
    std::this_thread::yield();
  }
  EXPECT_TRUE(initiator_.channel->payload_gone());
  EXPECT_FALSE(initiator_.channel->quiet()) << "its user is to look at it";
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kFailed);
  EXPECT_EQ(received.error, ECONNRESET);
  EXPECT_FALSE(responder_.sink.unplaceable) << "its own memory is there";
  EXPECT_TRUE(responder_.sink.messages.empty());
}

TEST_F(HostChannelTest, ClosedConnectionsKeepSoMuchAndNoMore) {
  const std::string payload(64 * 1024, 'p');
  std::vector<std::unique_ptr<Channel>> peers;
  size_t most = 0;
  for (size_t connection = 0; connection < 2 * LentMemory::kMostKept / (References::kMost * payload.size()); ++connection) {
    Make({});
    Shake();
    ASSERT_EQ(initiator_.channel->writer().max_ulpdu(), kMostUlpdu) << "they are referenced";
    for (size_t i = 0; i < References::kMost && initiator_.channel->writer().HasRoom(payload.size(), 1); ++i) initiator_.Send(payload);
    initiator_.channel->Close([](llp::UlpduWriter&) {});
    initiator_.channel.reset();
    peers.push_back(std::move(responder_.channel));
    most = std::max(most, LentMemory::kept());
  }
  EXPECT_GT(most, LentMemory::kMostKept / 2);
  EXPECT_LE(most, LentMemory::kMostKept);
}

TEST_F(HostChannelTest, MemoryOfTheReceiverThatIsGoneIsSaidToTheSink) {
  Shake();
  for (const size_t length : {size_t{100}, size_t{50000}}) {
    Make({});
    responder_.sink = {};
    Shake();
    responder_.sink.nowhere = true;
    const std::string payload(length, 'p');
    initiator_.Send(payload);
    initiator_.channel->Flush();
    Received received;
    std::thread ours([&] {
      SetThreadOfOurs();
      received = responder_.Receive();
    });
    ours.join();
    EXPECT_EQ(received.kind, Received::Kind::kStopped);
    EXPECT_TRUE(responder_.sink.unplaceable);
  }
}

TEST_F(HostChannelTest, AThreadOfOursThatSendsWhatIsGoneSurvives) {
  Shake();
  std::thread ours([&] {
    SetThreadOfOurs();
    const iovec piece{reinterpret_cast<void*>(8), 100};
    const std::string header(Sink::kHeader, 'h');
    initiator_.channel->writer().Append({reinterpret_cast<const uint8_t*>(header.data()), header.size()}, {&piece, 1}, false);
  });
  ours.join();
  EXPECT_TRUE(initiator_.channel->payload_gone());
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kFailed);
  EXPECT_FALSE(initiator_.channel->writer().HasRoom(1, 1)) << "nothing goes out behind it";
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
}

TEST_F(HostChannelTest, AReaderThatHangsIsNotWaitedForForEver) {
  Shake();
  std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  Reference* const reference = OldestReference(control_);
  ASSERT_NE(reference, nullptr);
  reference->claim = static_cast<uint32_t>(Claim::kConsumer);
  initiator_.channel->TakeOver(payload.data(), payload.size(), CopyAll);
  EXPECT_TRUE(initiator_.channel->failed());
  EXPECT_EQ(reference->claim.load(), static_cast<uint32_t>(Claim::kRevoked)) << "what it reads is not received";
}

// --- the right to read the other's memory goes away ---

class HostChannelWithoutRightsTest : public HostChannelTest {
 protected:
  ~HostChannelWithoutRightsTest() override { PeerMemory::ForbidForTesting(false); }

  // Looks for messages and bells, as the threads of a process do, until `enough`.
  template <typename Enough>
  static void Serve(End& end, const Enough& enough) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!enough() && std::chrono::steady_clock::now() < until) {
      if (end.Receive().kind == Received::Kind::kFailed) return;
      std::this_thread::yield();
    }
  }
  static auto Has(const End& end, size_t messages) {
    return [&end, messages] { return end.sink.messages.size() >= messages; };
  }
};

TEST_F(HostChannelWithoutRightsTest, WhatWasReferencedIsCopiedAndSoIsAllAfterIt) {
  Shake();
  std::vector<std::string> sent, expected;
  for (const size_t length : {60000, 10, 8192, 20000, 100}) {
    sent.push_back(std::string(length, static_cast<char>('a' + sent.size())));
    initiator_.Send(sent.back());
    expected.push_back(Message(sent.back()));
  }
  PeerMemory::ForbidForTesting(true);
  std::atomic<bool> all{false};
  std::thread producer([&] { Serve(initiator_, [&] { return all.load(); }); });
  Serve(responder_, Has(responder_, expected.size()));
  all = true;
  producer.join();
  EXPECT_TRUE(responder_.sink.messages == expected);
  EXPECT_EQ(initiator_.channel->Flush().kind, Flushed::Kind::kAll);
  EXPECT_EQ(initiator_.channel->consumed(), initiator_.channel->writer().appended()) << "nothing is in the peer's hands";
  EXPECT_EQ(initiator_.channel->writer().max_ulpdu(), kMostCopied);

  const std::string later(16000, 'x');
  initiator_.Send(later);
  EXPECT_EQ(responder_.Receive().kind, Received::Kind::kSome);
  EXPECT_EQ(responder_.sink.messages.back(), Message(later));
}

TEST_F(HostChannelWithoutRightsTest, EachMayWaitForTheOther) {
  Shake();
  responder_.Send("hello");
  responder_.channel->Flush();
  EXPECT_EQ(initiator_.Receive().kind, Received::Kind::kSome);
  initiator_.sink.messages.clear();
  const std::string one(50000, '1'), two(40000, '2');
  for (End* end : {&initiator_, &responder_}) {
    end->Send(one);
    end->Send(two);
  }
  PeerMemory::ForbidForTesting(true);
  std::atomic<int> through{0};
  const auto play = [&through](End& end) {
    Serve(end, Has(end, 2));
    ++through;
    Serve(end, [&] { return through.load() == 2; });  // who has all still serves the other
  };
  std::thread other([&] { play(initiator_); });
  play(responder_);
  other.join();
  for (End* end : {&initiator_, &responder_}) EXPECT_TRUE(end->sink.messages == (std::vector<std::string>{Message(one), Message(two)}));
}

TEST_F(HostChannelWithoutRightsTest, MemoryThatGoesAwayMeanwhileIsCopiedFirst) {
  Shake();
  std::string payload(30000, 'p');
  initiator_.Send(payload);
  PeerMemory::ForbidForTesting(true);
  std::thread consumer([&] { Serve(responder_, Has(responder_, 1)); });
  // Before or after the consumer asked for it.
  initiator_.channel->TakeOver(payload.data(), payload.size(), CopyAll);
  const std::string before = payload;
  std::memset(payload.data(), 'q', payload.size());
  std::atomic<bool> all{false};
  std::thread producer([&] { Serve(initiator_, [&] { return all.load(); }); });
  consumer.join();
  all = true;
  producer.join();
  EXPECT_TRUE(responder_.sink.messages == std::vector<std::string>{Message(before)});
}

TEST_F(HostChannelWithoutRightsTest, APeerThatCopiesNothingHoldsNobodyUp) {
  Shake();
  initiator_.Send(std::string(30000, 'p'));
  PeerMemory::ForbidForTesting(true);
  const auto begun = std::chrono::steady_clock::now();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(responder_.Receive().kind, Received::Kind::kNothing);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, std::chrono::milliseconds(100));
  EXPECT_TRUE(responder_.channel->in_ulpdu());
  responder_.tcp->Ends({.kind = Received::Kind::kFailed, .error = ECONNRESET});  // its process is gone
  const Received received = responder_.Receive();
  EXPECT_EQ(received.kind, Received::Kind::kFailed);
  EXPECT_EQ(received.error, ECONNRESET);
  EXPECT_TRUE(responder_.sink.messages.empty());
}

}  // namespace
}  // namespace weft::host
