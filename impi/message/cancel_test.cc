// Cancelling (IMPI 0.0, section 3.7.4), with each order in which the packets of both ends can meet.
#include <gtest/gtest.h>

#include <string>

#include "impi/message/testing/two_processes.h"

namespace weft::impi {
namespace {

class ImpiCancel : public TwoProcesses {
 protected:
  bool is_cancelled(SendId id) { return here->sends[id].cancelled; }
  bool is_refused(SendId id) { return here->sends[id].refused; }
  std::string WhyNot(PacketType type, SendId id) {
    Packet packet = FromThere(type);
    packet.source_request = id.value;
    return TwoProcesses::WhyNot(packet);
  }
};

TEST_F(ImpiCancel, WhatWasNotSentIsCancelledWithoutAPacket) {
  for (const size_t length : {0, 100, 250}) {
    const SendId send = Send(length, length == 0);
    EXPECT_EQ(here->Cancel(send), CancelOutcome::kCancelled);
    EXPECT_EQ(here->Cancel(send), CancelOutcome::kCancelled);
    EXPECT_EQ(There(), "");
    here->endpoint.Release(send);
  }
  EXPECT_EQ(here->endpoint.sends(), 0u);
}

TEST_F(ImpiCancel, OthersOfTheQueueAreSentAllTheSame) {
  Send(1, false, 1);
  const SendId send = Send(2, false, 2);
  Send(3, false, 3);
  EXPECT_EQ(here->Cancel(send), CancelOutcome::kCancelled);
  EXPECT_EQ(There(), "DATA DATA");
  EXPECT_FALSE(there->receives[Post(2)].matched);
  EXPECT_TRUE(there->receives[Post(3)].matched);
}

// Short, short and synchronous, long: the three cases of the time window.
TEST_F(ImpiCancel, WhatTheReceiverHoldsIsWithdrawn) {
  for (const auto& [length, synchronous] : {std::pair<size_t, bool>{10, false}, {10, true}, {250, false}}) {
    const SendId send = Send(length, synchronous);
    There();
    EXPECT_EQ(here->Cancel(send), CancelOutcome::kAsked);
    EXPECT_EQ(here->Cancel(send), CancelOutcome::kAsked) << "one packet asks for both";
    EXPECT_EQ(There(), "CANCEL");
    EXPECT_EQ(Back(), "CANCELYES");
    EXPECT_TRUE(is_cancelled(send));
    EXPECT_EQ(here->Cancel(send), CancelOutcome::kCancelled);
    EXPECT_EQ(there->endpoint.messages(), 0u);
    EXPECT_EQ(there->endpoint.flow_in(to_here).held(), 0u);
    here->endpoint.Release(send);
  }
  EXPECT_FALSE(there->receives[Post()].matched);
  EXPECT_EQ(here->endpoint.sends(), 0u);
}

TEST_F(ImpiCancel, AMessageThatWasMatchedMeanwhileIsNotCancelled) {
  const SendId send = Send(10);
  There();
  here->Cancel(send);
  const ReceiveId receive = Post();
  EXPECT_EQ(There(), "CANCEL");
  EXPECT_EQ(Back(), "CANCELNO");
  EXPECT_TRUE(is_refused(send));
  EXPECT_FALSE(is_cancelled(send));
  EXPECT_TRUE(there->receives[receive].complete);
  EXPECT_EQ(here->Cancel(send), CancelOutcome::kTooLate);
}

TEST_F(ImpiCancel, SyncAckOfAShortMessageCrossesCancel) {
  const SendId send = Send(10, true);
  There();
  here->Cancel(send);
  Post();
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_TRUE(here->sends[send].complete());
  EXPECT_EQ(There(), "CANCEL") << "it is on its way";
  EXPECT_EQ(Back(), "CANCELNO");
  EXPECT_TRUE(is_refused(send));
  here->endpoint.Release(send);
  EXPECT_EQ(here->endpoint.sends(), 0u);
}

TEST_F(ImpiCancel, SyncAckOfALongMessageCrossesCancelAndTheRestFollows) {
  const SendId send = Send(250);
  There();
  here->Cancel(send);
  const Bytes cancel = here->Take(to_there);
  const ReceiveId receive = Post();
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_EQ(here->Cancel(send), CancelOutcome::kAsked);
  EXPECT_EQ(there->On(cancel), "");
  EXPECT_EQ(There(1), "DATA");
  EXPECT_EQ(Back(), "CANCELNO") << "in the middle of the message";
  EXPECT_EQ(There(), "DATA");
  EXPECT_TRUE(here->sends[send].complete());
  EXPECT_EQ(there->receives[receive].bytes, Pattern(250));
}

TEST_F(ImpiCancel, CancelNoMayComeBeforeSyncAck) {
  const SendId send = Send(250);
  There();
  here->Cancel(send);
  ASSERT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kCancel);
  EXPECT_EQ(WhyNot(PacketType::kCancelNo, send), "");
  EXPECT_EQ(here->Cancel(send), CancelOutcome::kTooLate);
  EXPECT_EQ(WhyNot(PacketType::kSyncAck, send), "");
  EXPECT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kData);
}

TEST_F(ImpiCancel, TooLateIsSaidWithoutAPacket) {
  const SendId matched = Send(10, true), longer = Send(250);
  There();
  Post();
  Post();
  Back();
  EXPECT_EQ(here->Cancel(matched), CancelOutcome::kTooLate);
  EXPECT_EQ(here->Cancel(longer), CancelOutcome::kTooLate);
  EXPECT_EQ(There(), "DATA DATA");
  EXPECT_EQ(here->Cancel(longer), CancelOutcome::kTooLate);
  EXPECT_EQ(There(), "");
}

// MPI_Cancel and MPI_Request_free: the number stays taken until the answer is here.
TEST_F(ImpiCancel, ARequestThatEndsBeforeTheAnswerKeepsItsNumber) {
  for (const bool matched : {false, true}) {
    const SendId send = Send(10);
    There();
    here->Cancel(send);
    here->endpoint.Release(send);
    EXPECT_EQ(here->endpoint.sends(), 1u);
    const ReceiveId receive = matched ? Post() : ReceiveId();
    EXPECT_EQ(There(), "CANCEL");
    EXPECT_EQ(Back(), matched ? "CANCELNO" : "CANCELYES");
    EXPECT_EQ(here->endpoint.sends(), 0u);
    EXPECT_TRUE(!matched || there->receives[receive].complete);
  }
}

TEST_F(ImpiCancel, CancelWaitsForTheWindowAndSyncAckMayComeBefore) {
  Begin({.ack_mark = 2, .high_water = 2});
  Send(kDataLength, false, 8);
  const SendId send = Send(10, true);
  EXPECT_EQ(There(), "DATA DATASYNC");
  EXPECT_EQ(here->Cancel(send), CancelOutcome::kAsked);
  EXPECT_EQ(There(), "") << "the window is full";
  Post();
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_TRUE(here->sends[send].synchronized);
  EXPECT_EQ(There(), "");
  Post(8);
  EXPECT_EQ(Back(), "PROTOACK");
  EXPECT_EQ(There(), "CANCEL");
  EXPECT_EQ(Back(), "CANCELNO") << "each CANCEL has an answer";
  EXPECT_TRUE(is_refused(send));
}

// Other implementations give a number again when a send is complete (LAM: 0 for all short messages).
TEST_F(ImpiCancel, OfMessagesWithOneNumberOnlyTheLastIsWithdrawn) {
  Packet packet = FromThere(PacketType::kData);
  packet.source_request = 5;
  for (int32_t tag = 0; tag < 3; ++tag) {
    packet.tag = tag;
    ASSERT_EQ(TwoProcesses::WhyNot(packet), "");
  }
  EXPECT_EQ(WhyNot(PacketType::kCancel, SendId(5)), "");
  EXPECT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kCancelYes);
  EXPECT_EQ(here->matching.held(), 2u);
  EXPECT_FALSE(here->matching.Probe({.context = 0, .tag = 2}));
  EXPECT_EQ(WhyNot(PacketType::kCancel, SendId(5)), "");
  EXPECT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kCancelNo) << "the earlier ones are not the request's any more";
  EXPECT_EQ(here->matching.held(), 2u);
}

TEST_F(ImpiCancel, IfTheLastOneWasMatchedAnEarlierOneIsNotTakenForIt) {
  Packet packet = FromThere(PacketType::kData);
  packet.source_request = 5;
  for (int32_t tag = 0; tag < 2; ++tag) {
    packet.tag = tag;
    ASSERT_EQ(TwoProcesses::WhyNot(packet), "");
  }
  here->Post({.context = 0, .tag = 1}, kMuch);
  EXPECT_EQ(WhyNot(PacketType::kCancel, SendId(5)), "");
  EXPECT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kCancelNo);
  EXPECT_TRUE(here->matching.Probe({.context = 0, .tag = 0}));
}

TEST_F(ImpiCancel, AMessageThatAMatchedProbeTookIsNotWithdrawn) {
  const SendId send = Send(250);
  There();
  const auto message = there->MatchedProbe({.context = 4});
  ASSERT_TRUE(message);
  here->Cancel(send);
  There();
  EXPECT_EQ(Back(), "CANCELNO");
  const ReceiveId receive = there->Receive(*message, kMuch);
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_EQ(There(), "DATA DATA");
  EXPECT_EQ(there->receives[receive].bytes, Pattern(250));
}

TEST_F(ImpiCancel, AnswersThatNobodyAskedForAreNamed) {
  const SendId send = Send(10);
  There();
  const auto why = [](const char* type, SendId id) {
    return std::string("192.0.2.2/22 sent ") + type + ": pk_srqid is " + std::to_string(id.value) + ", which is no message to it that a CANCEL asked for";
  };
  EXPECT_EQ(WhyNot(PacketType::kCancelYes, send), why("CANCELYES", send));
  EXPECT_EQ(WhyNot(PacketType::kCancelNo, SendId(99)), why("CANCELNO", SendId(99)));
  here->Cancel(send);
  EXPECT_EQ(WhyNot(PacketType::kCancelYes, send), why("CANCELYES", send)) << "CANCEL was not sent yet";
  EXPECT_EQ(There(), "CANCEL");
  EXPECT_EQ(Back(), "CANCELYES");
  EXPECT_EQ(WhyNot(PacketType::kCancelYes, send), why("CANCELYES", send));
  EXPECT_EQ(WhyNot(PacketType::kCancelNo, send), why("CANCELNO", send));
}

TEST_F(ImpiCancel, APeerThatContradictsItselfIsNamed) {
  const SendId matched = Send(10, true), cancelled = Send(10, true), longer = Send(150);
  There();
  for (const SendId id : {matched, cancelled, longer}) here->Cancel(id);
  while (!here->Take(to_there).empty()) {
  }
  const auto number = [](SendId id) { return std::to_string(id.value); };
  EXPECT_EQ(WhyNot(PacketType::kSyncAck, matched), "");
  EXPECT_EQ(WhyNot(PacketType::kCancelYes, matched),
            "192.0.2.2/22 sent CANCELYES: pk_srqid is " + number(matched) + ", a message that a receive has matched (SYNCACK)");
  EXPECT_EQ(WhyNot(PacketType::kCancelYes, cancelled), "");
  EXPECT_EQ(WhyNot(PacketType::kSyncAck, cancelled),
            "192.0.2.2/22 sent SYNCACK: pk_srqid is " + number(cancelled) + ", a message that was cancelled (CANCELYES)");
  EXPECT_EQ(WhyNot(PacketType::kSyncAck, longer), "");
  EXPECT_FALSE(here->Take(to_there).empty());
  EXPECT_EQ(WhyNot(PacketType::kCancelYes, longer),
            "192.0.2.2/22 sent CANCELYES: pk_srqid is " + number(longer) + ", a message that a receive has matched (SYNCACK)") << "all of it was sent";
  EXPECT_EQ(WhyNot(PacketType::kCancelNo, longer), "");
}

}  // namespace
}  // namespace weft::impi
