// RFC 5040 sections 4.8, 5.4, 6.2 and 7: ending a stream; RFC 5044 section 8: for errors of MPA.
#include "tests/conformance/rdmap/harness.h"

namespace weft::rdmap {
namespace {

using testing::Bytes;
using testing::Pattern;
using testing::Tagged;
using testing::Untagged;

const Bytes kCrcTerminate = {0x20, 0x02, 0, 0};

class Rfc5040Terminate : public RdmapTest {};

TEST_F(Rfc5040Terminate, Section_5_4_UnderstandsThePeersTerminate) {
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, kCrcTerminate)));
  EXPECT_EQ(stream_->state(), StreamState::kTerminated);
  EXPECT_TRUE(stream_->terminated_by_peer());
  ASSERT_TRUE(stream_->terminate());
  EXPECT_EQ(stream_->terminate()->layer, TerminateLayer::kLlp);
  EXPECT_EQ(stream_->terminate()->error_code, 2);
}

TEST_F(Rfc5040Terminate, Section_5_4_TakesATerminateCutAnywhere) {
  Bytes payload = {0x01, 0x01, 0xe0, 0x00, 0x00, 0x2e};
  const Bytes quoted = testing::ReadRequest(3, {});
  payload.insert(payload.end(), quoted.begin(), quoted.end());
  ASSERT_EQ(payload.size(), TerminateMessage::kMaxLength);
  for (size_t cut = 0; cut <= payload.size(); ++cut) {
    Restart({.ird = 2, .ord = 2});
    const auto at = payload.begin() + static_cast<ptrdiff_t>(cut);
    EXPECT_TRUE(Receive(Untagged(Opcode::kTerminate, 1, 0, Bytes(payload.begin(), at), false)));
    EXPECT_EQ(stream_->state(), StreamState::kOperational);
    EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, static_cast<uint32_t>(cut), Bytes(at, payload.end()))));
    EXPECT_TRUE(stream_->terminated_by_peer());
    EXPECT_TRUE(stream_->terminate()->has_read_header);
  }
}

TEST_F(Rfc5040Terminate, Section_5_4_SendsNothingAfterThePeersTerminate) {
  host_->Post({.opcode = Opcode::kSend}, Pattern(4));
  ASSERT_TRUE(Receive(testing::ReadRequest(1, {ddp::STag(1), {}, 4, kRegion, ddp::TaggedOffset(kBase)})));
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, kCrcTerminate)));
  EXPECT_FALSE(stream_->HasWork());
  EXPECT_FALSE(Next());
  stream_->Terminate({});
  EXPECT_FALSE(Next());
  EXPECT_TRUE(stream_->terminated_by_peer());
}

TEST_F(Rfc5040Terminate, Section_5_4_ReceivesNothingAfterThePeersTerminate) {
  host_->PostReceive({10});
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, kCrcTerminate)));
  EXPECT_FALSE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(4))));
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 2, 0, Bytes{0, 0, 0, 0})));
  EXPECT_EQ(host_->receives_taken, 0u);
  EXPECT_EQ(stream_->terminate()->error_code, 2);
}

TEST_F(Rfc5040Terminate, Section_5_4_EndsForATerminateThatMakesNoSenseAndDoesNotAnswerIt) {
  for (size_t length : {0, 1, 3}) {
    Restart({.ird = 2, .ord = 2});
    EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, Bytes(length, 0xff))));
    EXPECT_TRUE(stream_->terminated_by_peer());
    EXPECT_FALSE(Next());
  }
}

TEST_F(Rfc5040Terminate, Section_5_4_SendsNothingAfterItsOwnTerminate) {
  host_->Post({.opcode = Opcode::kSend}, Pattern(4));
  stream_->Terminate({});
  EXPECT_TRUE(stream_->HasWork());
  EXPECT_TRUE(NextTerminate());
  EXPECT_FALSE(stream_->HasWork());
  EXPECT_FALSE(Next());
  EXPECT_TRUE(host_->started.empty());
  EXPECT_EQ(stream_->terminate_end_position(), wire_.taken());
}

TEST_F(Rfc5040Terminate, Section_5_4_SendsOneTerminateOnly) {
  stream_->OnLowerLayerError(llp::Error::kDamaged);
  stream_->Terminate({});
  EXPECT_TRUE(NextTerminate());
  stream_->Terminate({});
  EXPECT_FALSE(Next());
}

TEST_F(Rfc5040Terminate, Section_7_1_SendsTheTerminateBeforeWhatIsLeftOfAMessage) {
  host_->Post({.opcode = Opcode::kSend}, Pattern(5000));
  wire_.set_room(1);
  EXPECT_EQ(OpcodeOf(*Next()), Opcode::kSend);
  EXPECT_FALSE(Receive(Tagged(Opcode::kWrite, 1, 0, Pattern(4))));
  ExpectTerminate(ddp::Error::kInvalidStag);
  EXPECT_FALSE(Next());
}

TEST_F(Rfc5040Terminate, Section_7_1_TheFirstErrorWins) {
  const Bytes segment = Tagged(Opcode::kWrite, 1, 0, Pattern(4));
  EXPECT_FALSE(Receive(segment));
  stream_->OnLowerLayerError(llp::Error::kDamaged);
  ExpectQuotes(ExpectTerminate(ddp::Error::kInvalidStag), segment);
}

TEST_F(Rfc5040Terminate, Section_7_1_QuotesNothingForAnErrorOfItsOwn) {
  stream_->Terminate({});
  const TerminateMessage message = ExpectTerminate(Error::kLocalCatastrophic);
  EXPECT_EQ(message.ddp_header_length, 0);
  EXPECT_EQ(message.ddp_segment_length, std::nullopt);
  EXPECT_FALSE(message.has_read_header);
}

TEST_F(Rfc5040Terminate, Rfc5044_Section_8_NamesErrorsOfMpa) {
  const struct {
    llp::Error error;
    uint8_t code;
  } kCases[] = {{llp::Error::kDamaged, 2}, {llp::Error::kMisframed, 3}, {llp::Error::kMisframed, 3}};
  for (const auto& c : kCases) {
    Restart({.ird = 2, .ord = 2});
    stream_->OnLowerLayerError(c.error);
    const TerminateMessage message = ExpectTerminate(TerminateLayer::kLlp, 0, c.code);
    EXPECT_EQ(message.ddp_header_length, 0);
  }
}

TEST_F(Rfc5040Terminate, Section_6_2_1_CompletesNothingAfterTheEnd) {
  host_->Post({.opcode = Opcode::kSend}, Pattern(4));
  stream_->Transmit(wire_);
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, kCrcTerminate)));
  stream_->OnTransmitted(wire_.appended());
  EXPECT_TRUE(host_->sent.empty());
}

TEST_F(Rfc5040Terminate, Section_5_4_IsPlacedEvenInTheMiddleOfAnotherMessage) {
  host_->PostReceive({100});
  EXPECT_TRUE(Receive(Untagged(Opcode::kSend, 1, 0, Pattern(4), false)));
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, kCrcTerminate)));
  EXPECT_TRUE(stream_->terminated_by_peer());
  EXPECT_TRUE(host_->arrivals.empty());
}

TEST_F(Rfc5040Terminate, Rfc5041_Section_7_1_ChecksThePositionOfATerminate) {
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 2, 0, kCrcTerminate)));
  ExpectTerminate(ddp::Error::kMsnRange);
}

TEST_F(Rfc5040Terminate, Rfc5041_Section_7_1_RefusesATerminateTooLongForItsBuffer) {
  EXPECT_FALSE(Receive(Untagged(Opcode::kTerminate, 1, 0, Bytes(TerminateMessage::kMaxLength + 1))));
  ExpectTerminate(ddp::Error::kMessageTooLong);
}

}  // namespace
}  // namespace weft::rdmap
