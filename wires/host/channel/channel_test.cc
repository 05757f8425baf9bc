// ULPDUs, acknowledgements, sleep and the change to TCP.
#include <gtest/gtest.h>

#include <sched.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "wires/host/channel/testing.h"

namespace weft::host {
namespace {

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
  responder_.ReceiveUntilIdle();
  responder_.channel->EndLend();
  EXPECT_FALSE(responder_.channel->idle()) << "it is to ask for the bell";
}

TEST_F(HostChannelTest, APollerIsIdleWhileThereIsNothingToDo) {
  network_.Hold();
  Shake();
  responder_.channel->Lend();
  responder_.ReceiveUntilIdle();
  initiator_.Send("one");
  EXPECT_FALSE(responder_.channel->idle());
  responder_.ReceiveUntilIdle();
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

// A receiver may close the connection as soon as it has the last message; its sender must not find that message flushed.
TEST_F(HostChannelTest, TheEndIsHeardAfterWhatThePeerReadBeforeIt) {
  Shake();
  const std::string payload(50000, 'p');
  initiator_.Send(payload);
  initiator_.channel->Flush();
  responder_.Receive();
  initiator_.tcp->Ends({.kind = Received::Kind::kEnded});
  EXPECT_EQ(initiator_.Receive().kind, Received::Kind::kEnded);
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

TEST_F(HostChannelTest, AfterTheEndOfTheOutputNothingGoesOverTcp) {
  bool needed = false;
  Make([&] { return needed; });
  Shake();
  needed = true;
  initiator_.channel->ApplyFaults();
  EXPECT_TRUE(initiator_.channel->ReadyToSend());
  initiator_.channel->EndOutput();
  EXPECT_FALSE(initiator_.channel->ReadyToSend());
}

}  // namespace
}  // namespace weft::host
