#include "impi/message/endpoint.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "impi/message/testing/two_processes.h"

namespace weft::impi {
namespace {

class ImpiEndpoint : public TwoProcesses {};

TEST_F(ImpiEndpoint, AShortMessageComesAsItWasSent) {
  const SendId send = Send(50);
  EXPECT_EQ(There(), "DATA");
  EXPECT_TRUE(here->sends[send].complete());
  const ReceiveId receive = Post();
  EXPECT_TRUE(there->receives[receive].complete);
  EXPECT_EQ(there->receives[receive].bytes, Pattern(50));
  EXPECT_EQ(there->receives[receive].envelope.rank, 1);
  EXPECT_EQ(Back(), "");
}

TEST_F(ImpiEndpoint, ALongMessageComesAsItWasSent) {
  const SendId send = Send(250);
  EXPECT_EQ(There(), "DATASYNC");
  EXPECT_EQ(Back(), "");
  const ReceiveId receive = Post();
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_FALSE(here->sends[send].complete());
  EXPECT_EQ(There(), "DATA DATA");
  EXPECT_TRUE(here->sends[send].complete());
  EXPECT_EQ(there->receives[receive].bytes, Pattern(250));
  here->endpoint.Release(send);
  EXPECT_EQ(here->endpoint.sends() + there->endpoint.messages(), 0u);
}

TEST_F(ImpiEndpoint, ASynchronousSendCompletesWhenItIsMatched) {
  const SendId send = Send(0, true);
  EXPECT_EQ(There(), "DATASYNC");
  EXPECT_FALSE(here->sends[send].complete());
  Post();
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_TRUE(here->sends[send].complete());
}

TEST_F(ImpiEndpoint, AReceiveThatIsTooShortIsTruncated) {
  const ReceiveId small = Post(7, 150), empty = Post(7, 0);
  Send(250);
  Send(10);
  There();
  Back();
  There();
  EXPECT_TRUE(there->receives[small].truncated && there->receives[small].complete);
  EXPECT_EQ(there->receives[small].bytes, Pattern(150)) << "the front of the message";
  EXPECT_EQ(there->receives[small].envelope.length, 250u);
  EXPECT_TRUE(there->receives[empty].truncated && there->receives[empty].complete);
}

// Section 3.7.3.
TEST_F(ImpiEndpoint, ProbesSendNothingAndKnowTheWholeLength) {
  Send(250);
  There();
  const Wanted wanted{.context = 4, .source = to_here};
  ASSERT_TRUE(there->matching.Probe(wanted));
  EXPECT_EQ(there->endpoint.MessageOf(*there->matching.Probe(wanted)).envelope.length, 250u);
  const auto message = there->MatchedProbe(wanted);
  ASSERT_TRUE(message);
  const ReceiveId other = Post();
  EXPECT_FALSE(there->receives[other].matched) << "the message is the matched probe's";
  EXPECT_EQ(Back(), "");
  const ReceiveId receive = there->Receive(*message, kMuch);
  EXPECT_EQ(Back(), "SYNCACK");
  There();
  EXPECT_EQ(there->receives[receive].bytes, Pattern(250));
}

// --- flow control ---

TEST_F(ImpiEndpoint, HighWaterStopsASenderAndProtoAckLetsItGoOn) {
  Begin({.ack_mark = 2, .high_water = 5});
  for (int i = 0; i < 7; ++i) Send(kDataLength);
  EXPECT_EQ(There(), "DATA DATA DATA") << "the others of the window are for packets that are no first ones";
  EXPECT_EQ(Back(), "") << "no receive has matched";
  Post();
  EXPECT_EQ(Back(), "");
  Post();
  EXPECT_EQ(Back(), "PROTOACK");
  EXPECT_EQ(There(), "DATA DATA");
}

// Both send a long message and short ones, and receive in that order.
TEST_F(ImpiEndpoint, SyncAckDoesNotWaitBehindMessagesThatNobodyReceivesYet) {
  const auto both_come = [&](const FlowLimits& flow) {
    Begin(flow);
    for (auto [from, to] : {std::pair{&*here, to_there}, std::pair{&*there, to_here}}) {
      from->Send(to, {.context = 4}, Pattern(250));
      for (int i = 0; i < 20; ++i) from->Send(to, {.context = 4}, Pattern(kDataLength));
    }
    There();
    Back();
    const ReceiveId first_here = here->Post({.context = 4}, kMuch), first_there = there->Post({.context = 4}, kMuch);
    for (int i = 0; i < 10; ++i) {
      There();
      Back();
    }
    return here->receives[first_here].complete && there->receives[first_there].complete;
  };
  EXPECT_TRUE(both_come({.ack_mark = 1, .high_water = 2}));
  EXPECT_TRUE(both_come({.ack_mark = 2, .high_water = 4}));
  EXPECT_TRUE(both_come({.ack_mark = 10, .high_water = 20}));
  // It cannot be had with less: flow.h.
  EXPECT_FALSE(both_come({.ack_mark = 1, .high_water = 1}));
  EXPECT_FALSE(both_come({.ack_mark = 2, .high_water = 2}));
  EXPECT_TRUE(both_come({.ack_mark = 1, .high_water = 1, .store = 20 * kDataLength}));
}

TEST_F(ImpiEndpoint, ProtoAckIsBeforeAllOthersAndNotBlocked) {
  Begin({.ack_mark = 1, .high_water = 1});
  there->Send(to_here, {.context = 4}, Pattern(kDataLength));
  there->Send(to_here, {.context = 4}, Pattern(kDataLength));
  EXPECT_EQ(Back(), "DATA") << "that direction is full now";
  Post();
  Send(10, true);
  EXPECT_EQ(There(), "DATASYNC");
  EXPECT_EQ(Back(), "PROTOACK") << "SYNCACK counts and waits";
  here->Post({.context = 4}, kMuch);
  EXPECT_EQ(There(), "PROTOACK");
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_EQ(There(), "PROTOACK");
  EXPECT_EQ(Back(), "DATA");
}

TEST_F(ImpiEndpoint, BothDirectionsFullOfMatchedMessagesGoOn) {
  Begin({.ack_mark = 2, .high_water = 2});
  for (int i = 0; i < 9; ++i) {
    Send(250, true);
    there->Send(to_here, {.context = 4}, Pattern(250), true);
  }
  There();
  Back();
  for (int i = 0; i < 9; ++i) {
    Post();
    here->Post({.context = 4}, kMuch);
  }
  for (int i = 0; i < 1000 && (here->endpoint.HasOutput(to_there) || there->endpoint.HasOutput(to_here)); ++i) {
    There(1);
    Back(1);
  }
  for (auto* process : {&*here, &*there}) {
    for (const auto& [id, receive] : process->receives) EXPECT_EQ(receive.bytes, Pattern(250)) << id.value;
  }
}

// --- the end (section 3.8) ---

TEST_F(ImpiEndpoint, AFinishedProcessDestroysWhatNobodyReceivedAndAcknowledgesIt) {
  Begin({.ack_mark = 1, .high_water = 3});
  for (int i = 0; i < 9; ++i) Send(kDataLength);
  EXPECT_EQ(There(), "DATA DATA");
  EXPECT_EQ(Back(), "");
  there->Finish();
  EXPECT_TRUE(there->endpoint.IsQuiet(to_here)) << "FINI may be sent";
  there->endpoint.OnFiniSent(to_here);
  EXPECT_EQ(there->endpoint.messages(), 0u);
  EXPECT_EQ(Back(), "PROTOACK PROTOACK");
  for (int i = 0; i < 10; ++i) {
    There();
    Back();
  }
  EXPECT_TRUE(here->endpoint.IsQuiet(to_there));
  EXPECT_EQ(there->endpoint.messages(), 0u);
}

TEST_F(ImpiEndpoint, AfterFiniOnlyProtoAckIsSent) {
  Send(250);
  const SendId held = Send(10);
  There();
  there->Finish();
  there->endpoint.OnFiniSent(to_here);
  here->Cancel(held);
  EXPECT_EQ(There(), "CANCEL");
  Send(10, true);
  EXPECT_EQ(There(), "DATASYNC");
  EXPECT_EQ(Back(), "") << "neither an answer to CANCEL nor SYNCACK";
}

TEST_F(ImpiEndpoint, AProcessIsNotQuietBeforeItsMessagesAndAnswersAreSent) {
  const SendId send = Send(250);
  EXPECT_FALSE(here->endpoint.IsQuiet(to_there));
  There();
  EXPECT_TRUE(here->endpoint.IsQuiet(to_there)) << "nothing is to be sent until SYNCACK comes";
  EXPECT_EQ(here->endpoint.Unanswered(to_there), 1u);
  Post();
  EXPECT_FALSE(there->endpoint.IsQuiet(to_here));
  Back();
  EXPECT_TRUE(there->endpoint.IsQuiet(to_here));
  EXPECT_FALSE(here->endpoint.IsQuiet(to_there));
  EXPECT_EQ(here->endpoint.Unanswered(to_there), 0u);
  There();
  EXPECT_TRUE(here->endpoint.IsQuiet(to_there));
  EXPECT_TRUE(here->sends[send].complete());
  const SendId other = Send(10);
  There();
  here->Cancel(other);
  There();
  EXPECT_EQ(here->endpoint.Unanswered(to_there), 1u) << "the answer to CANCEL";
  Back();
  EXPECT_EQ(here->endpoint.Unanswered(to_there), 0u);
}

TEST_F(ImpiEndpoint, WhatComesTooLateSendsNothingAfterFini) {
  const SendId send = Send(250), held = Send(10);
  There();
  here->Finish();
  here->endpoint.OnFiniSent(to_there);
  EXPECT_EQ(here->Cancel(held), CancelOutcome::kTooLate);
  Post();
  EXPECT_EQ(Back(), "SYNCACK");
  EXPECT_EQ(There(), "");
  EXPECT_FALSE(here->sends[send].complete());
  EXPECT_EQ(here->endpoint.Lose(to_there).sends.size(), 2u);
}

TEST_F(ImpiEndpoint, AReceiveThatIsUnderWayComesToItsEndAfterFinish) {
  Send(250);
  There();
  const ReceiveId receive = Post();
  there->Finish();
  Back();
  There();
  EXPECT_EQ(there->receives[receive].bytes, Pattern(250));
}

TEST_F(ImpiEndpoint, AfterFiniOnlyAcknowledgmentsAreAccepted) {
  Send(1, true);
  There();
  here->endpoint.OnFini(to_there);
  Packet packet = FromThere(PacketType::kSyncAck);
  packet.source_request = here->sends.begin()->first.value;
  EXPECT_EQ(WhyNot(packet), "");
  for (const PacketType type : {PacketType::kData, PacketType::kDataSync, PacketType::kCancel, PacketType::kCancelYes, PacketType::kCancelNo}) {
    const std::string number = std::to_string(static_cast<uint32_t>(type));
    EXPECT_EQ(WhyNot(FromThere(type)),
              std::string("192.0.2.2/22 sent ") + NameOf(type) + ": pk_type is " + number + "; after FINI only acknowledgments may come");
  }
}

// --- wrong packets; others are in sender_test and receiver_test ---

TEST_F(ImpiEndpoint, ErrorsNameTheProcessAndTheField) {
  Packet packet = FromThere(PacketType::kSyncAck);
  packet.source_request = 5;
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/22 sent SYNCACK: pk_srqid is 5, which is no message to it that waits for an answer");
  const auto error = here->endpoint.OnPacket(packet);
  EXPECT_EQ(error.error().process, kThereName);
  EXPECT_EQ(error.error().field, "pk_srqid");
}

TEST_F(ImpiEndpoint, PacketsOfStrangersAndForOthersAreRefused) {
  Packet packet = FromThere(PacketType::kData);
  packet.source.number = 23;
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/23 sent DATA: pk_src is no process of another client of this job");
  packet = FromThere(PacketType::kData);
  packet.destination.number = 12;
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/22 sent DATA: pk_dest is 192.0.2.1/12; the packet came to 192.0.2.1/11");
  EXPECT_EQ(WhyNot(FromThere(PacketType::kFini)), "192.0.2.2/22 sent FINI: pk_type is 7, which is for agents");
}

TEST_F(ImpiEndpoint, WhatTheLimitsForbidIsRefused) {
  Packet packet = FromThere(PacketType::kData);
  packet.tag = 32768;
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/22 sent a wrong packet: pk_tag is 32768; the clients agreed on 0 to 32767 (IMPI_C_TAGUB)");
  packet = FromThere(PacketType::kDataSync);
  packet.data_length = 101;
  packet.message_length = 200;
  Bytes frame(Packet::kSize);
  packet.Serialize(std::span<uint8_t, Packet::kSize>(frame.data(), Packet::kSize));
  const auto error = here->endpoint.OnHeader(std::span<const uint8_t, Packet::kSize>(frame.data(), Packet::kSize));
  ASSERT_FALSE(error.ok());
  EXPECT_EQ(error.error().process, kThereName);
  EXPECT_EQ(error.error().field, "pk_len");
}

TEST_F(ImpiEndpoint, AProtoAckTooManyIsRefused) {
  Begin({.ack_mark = 2, .high_water = 3});
  Send(1);
  There();
  EXPECT_EQ(WhyNot(FromThere(PacketType::kProtocolAck)),
            "192.0.2.2/22 sent PROTOACK: pk_type is 2; only 1 packets to it are unacknowledged, less than the hosts agreed on (IMPI_H_ACKMARK)");
  Send(1);
  There();
  EXPECT_EQ(WhyNot(FromThere(PacketType::kProtocolAck)), "");
}

TEST_F(ImpiEndpoint, MorePacketsThanHighWaterAreRefused) {
  Begin({.ack_mark = 1, .high_water = 2});
  Packet packet = FromThere(PacketType::kData);
  packet.data_length = packet.message_length = kDataLength;
  EXPECT_EQ(WhyNot(packet), "");
  EXPECT_EQ(WhyNot(packet), "");
  const std::string why = "; it is one packet more than the 2 without PROTOACK that the hosts agreed on (IMPI_H_HIWATER)";
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/22 sent DATA: pk_type is 0" + why);
  EXPECT_EQ(WhyNot(FromThere(PacketType::kCancel)), "192.0.2.2/22 sent CANCEL: pk_type is 4" + why);
  here->Post({.context = 4}, kMuch);
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/22 sent DATA: pk_type is 0" + why) << "the context differs: no receive has matched";
  here->Post({.context = 0}, kMuch);
  EXPECT_EQ(WhyNot(packet), "192.0.2.2/22 sent DATA: pk_type is 0" + why) << "PROTOACK is not sent yet";
  EXPECT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kProtocolAck);
  EXPECT_EQ(WhyNot(packet), "");
}

// A peer that asks and asks and acknowledges nothing.
TEST_F(ImpiEndpoint, AnswersThatWaitAreBounded) {
  Begin({.ack_mark = 1, .high_water = 1});
  Send(1);
  ASSERT_FALSE(here->Take(to_there).empty());
  std::string why;
  size_t asked = 0;
  for (; why.empty() && asked < 2 * Pair::kMostAnswers; ++asked) {
    why = WhyNot(FromThere(PacketType::kCancel));
    EXPECT_TRUE(!why.empty() || HeaderOf(here->Take(to_there)).type == PacketType::kProtocolAck);
  }
  EXPECT_EQ(why, "192.0.2.2/22 sent CANCEL: pk_type is 4; 65536 answers wait until it acknowledges packets (PROTOACK)");
  EXPECT_EQ(WhyNot(FromThere(PacketType::kProtocolAck)), "") << "it may do so now";
  EXPECT_EQ(HeaderOf(here->Take(to_there)).type, PacketType::kCancelNo);
  EXPECT_EQ(WhyNot(FromThere(PacketType::kCancel)), "");
}

TEST_F(ImpiEndpoint, AnErrorChangesNothing) {
  Begin({.ack_mark = 1, .high_water = 2});
  Packet packet = FromThere(PacketType::kData);
  packet.message_length = 5;
  packet.data_length = 3;
  packet.destination_request = 9;
  for (int i = 0; i < 5; ++i) EXPECT_NE(WhyNot(packet), "");
  EXPECT_EQ(here->endpoint.flow_in(to_there).unacknowledged(), 0u);
  EXPECT_EQ(here->endpoint.messages(), 0u);
  EXPECT_FALSE(here->endpoint.HasOutput(to_there));
}

TEST_F(ImpiEndpoint, APeerThatIsGoneLeavesNothing) {
  const SendId done = Send(10), released = Send(250), waiting = Send(250, true);
  here->endpoint.Release(released);
  There();
  there->Send(to_here, {.context = 4}, Pattern(250));
  Back();
  const Endpoint::Lost lost = here->endpoint.Lose(to_there);
  EXPECT_EQ(lost.sends, (std::vector<SendId>{done, waiting}));
  EXPECT_EQ(lost.messages.size(), 1u);
  EXPECT_EQ(here->endpoint.sends() + here->endpoint.messages(), 0u);
  EXPECT_FALSE(here->endpoint.HasOutput(to_there));
  EXPECT_EQ(WhyNot(FromThere(PacketType::kProtocolAck)), "192.0.2.2/22 sent PROTOACK: pk_src is a process that has left");
}

}  // namespace
}  // namespace weft::impi
