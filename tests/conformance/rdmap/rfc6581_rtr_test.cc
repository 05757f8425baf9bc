// RFC 6581 section 9.2 and 9.3: the ready-to-receive message of peer-to-peer mode.
#include "tests/conformance/rdmap/harness.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;
using testing::Pattern;
using testing::Tagged;
using testing::Untagged;

class Rfc6581Rtr : public RdmapTest {
 protected:
  Rfc6581Rtr() : RdmapTest({}) {}
};

TEST_F(Rfc6581Rtr, Section_9_2_SendsAZeroLengthSendThatCountsAsAMessage) {
  stream_->SendRtr(llp::Rtr::kSend);
  host_->Post({.opcode = Opcode::kSend}, {0xaa});
  EXPECT_EQ(Next(), Untagged(Opcode::kSend, 1, 0, {}));
  EXPECT_EQ(Next(), Untagged(Opcode::kSend, 2, 0, {0xaa}));
  EXPECT_EQ(host_->sent, std::vector<int>{0});
}

TEST_F(Rfc6581Rtr, Section_9_2_SendsAZeroLengthWrite) {
  stream_->SendRtr(llp::Rtr::kWrite);
  EXPECT_TRUE(stream_->HasWork());
  const auto segment = Next();
  ASSERT_TRUE(segment);
  EXPECT_EQ(OpcodeOf(*segment), Opcode::kWrite);
  EXPECT_EQ(segment->size(), ddp::TaggedHeader::kLength);
  EXPECT_FALSE(stream_->HasWork());
  EXPECT_TRUE(stream_->idle());
}

TEST_F(Rfc6581Rtr, Section_9_2_SendsAZeroLengthReadEvenWithoutOrd) {
  stream_->SendRtr(llp::Rtr::kRead);
  const auto segment = Next();
  ASSERT_TRUE(segment);
  EXPECT_EQ(OpcodeOf(*segment), Opcode::kReadRequest);
  EXPECT_EQ(ReadOf(*segment).length, 0u);
  EXPECT_NE(ReadOf(*segment).sink_stag, ddp::STag(0));
  EXPECT_NE(ReadOf(*segment).source_stag, ddp::STag(0));
  EXPECT_FALSE(stream_->idle());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, 99, 12345, {})));
  EXPECT_TRUE(host_->reads_done.empty());
  EXPECT_TRUE(stream_->idle());
}

TEST_F(Rfc6581Rtr, Section_9_2_TheReadCountsAgainstOrd) {
  Restart({.ird = 1, .ord = 1});
  stream_->SendRtr(llp::Rtr::kRead);
  host_->PostRead(ddp::STag(1), 0, 1, kSink, kBase);
  EXPECT_EQ(ReadOf(*Next()).length, 0u);
  EXPECT_FALSE(Next());
  EXPECT_TRUE(Receive(Tagged(Opcode::kReadResponse, 0, 0, {})));
  EXPECT_EQ(ReadOf(*Next()).length, 1u);
}

TEST_F(Rfc6581Rtr, Section_9_2_AReceivedSendTakesNoReceiveButAMessageNumber) {
  Restart({.expected_rtr = llp::Rtr::kSend});
  host_->PostReceive({10});
  EXPECT_FALSE(stream_->RtrReceived());
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, {})));
  EXPECT_TRUE(stream_->RtrReceived());
  EXPECT_EQ(host_->receives_taken, 0u);
  EXPECT_TRUE(host_->arrivals.empty());
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 2, 0, {})));
  EXPECT_EQ(host_->arrivals.size(), 1u);
}

TEST_F(Rfc6581Rtr, Section_9_2_AReceivedWriteIsNotLookedAt) {
  Restart({.expected_rtr = llp::Rtr::kWrite});
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, 0, 0, {})));
  EXPECT_TRUE(stream_->RtrReceived());
  EXPECT_EQ(host_->resolved, 0u);
}

TEST_F(Rfc6581Rtr, Section_9_2_AReceivedReadIsAnsweredEvenWithoutIrd) {
  Restart({.expected_rtr = llp::Rtr::kRead});
  EXPECT_TRUE(Receive(testing::ReadRequest(1, {ddp::STag(7), ddp::TaggedOffset(8), 0, ddp::STag(0), {}})));
  EXPECT_TRUE(stream_->RtrReceived());
  EXPECT_EQ(Next(), Tagged(Opcode::kReadResponse, 7, 8, {}));
}

TEST_F(Rfc6581Rtr, Section_9_3_TheResponderIsSilentUntilTheRtrCame) {
  Restart({.expected_rtr = llp::Rtr::kWrite});
  host_->Post({.opcode = Opcode::kSend}, {0xaa});
  EXPECT_FALSE(stream_->HasWork());
  EXPECT_FALSE(Next());
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, 0, 0, {})));
  EXPECT_TRUE(stream_->HasWork());
  EXPECT_TRUE(Next());
}

TEST_F(Rfc6581Rtr, Section_9_3_TheResponderMayTerminateBeforeTheRtrCame) {
  Restart({.expected_rtr = llp::Rtr::kWrite});
  stream_->Terminate({});
  EXPECT_TRUE(stream_->HasWork());
  EXPECT_TRUE(NextTerminate());
}

TEST_F(Rfc6581Rtr, Section_9_3_AFirstMessageWithDataIsTakenForWhatItIs) {
  Restart({.expected_rtr = llp::Rtr::kSend});
  host_->PostReceive({10});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(3))));
  EXPECT_TRUE(stream_->RtrReceived());
  EXPECT_EQ(host_->arrivals.size(), 1u);
}

TEST_F(Rfc6581Rtr, Section_9_3_OnlyTheFirstMessageIsTheRtr) {
  Restart({.expected_rtr = llp::Rtr::kSend});
  host_->PostReceive({10});
  EXPECT_TRUE(Receive(Tagged(Opcode::kWrite, 0, 0, {})));
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, {})));
  EXPECT_EQ(host_->arrivals.size(), 1u);
}

TEST_F(Rfc6581Rtr, Section_9_3_NothingIsAwaitedOutsideOfPeerToPeerMode) { EXPECT_TRUE(stream_->RtrReceived()); }

}  // namespace
}  // namespace weft::rdmap
