#include "impi/message/sender.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace weft::impi {
namespace {

using Kind = Event::Kind;

constexpr uint32_t kDataLength = 100;  // bytes
constexpr PeerId kPeer(3);

class ImpiSender : public testing::Test {
 protected:
  // What is left of a packet, as a line: "DATA 7 @0+10 last".
  std::string Take() {
    Outgoing out;
    const bool cancel = sender.has_cancels();
    const Packet packet = cancel ? sender.TakeCancel(out) : sender.TakeData(true, out);
    EXPECT_EQ(packet.source_request, out.send.value);
    EXPECT_EQ(packet.data_length, out.length);
    if (cancel) return "CANCEL " + std::to_string(out.send.value);
    EXPECT_TRUE(packet.destination_request == 0 || packet.destination_request == 1000 + out.send.value);
    return std::string(NameOf(packet.type)) + " " + std::to_string(out.send.value) + " @" + std::to_string(out.offset) + "+" + std::to_string(out.length) +
           (out.last ? " last" : "");
  }
  bool has_data() const { return sender.has_firsts() || sender.has_rests(); }
  SendId Send(uint64_t length, bool synchronous = false) { return sender.Send({.context = 4, .rank = 1, .tag = 7, .length = length}, synchronous); }
  Kind Ack(SendId id) {
    const auto event = sender.OnSyncAck({.type = PacketType::kSyncAck, .source_request = id.value, .destination_request = 1000 + id.value});
    EXPECT_TRUE(event.ok());
    EXPECT_EQ(event->send, id);
    return event->kind;
  }
  std::string WhyNotAck(SendId id) {
    const auto event = sender.OnSyncAck({.type = PacketType::kSyncAck, .source_request = id.value});
    return event.ok() ? "" : event.error().field + (" " + event.error().why);
  }
  Result<Event, Complaint> Reply(PacketType type, SendId id) { return sender.OnCancelReply({.type = type, .source_request = id.value}); }

  Handles<Outbound> sends;
  Sender sender{kPeer, Peer::kStandard, kDataLength, sends};
};

TEST_F(ImpiSender, ShortMessagesAreOnePacketOfAnyLengthUpToTheLimit) {
  EXPECT_FALSE(has_data());
  for (const uint64_t length : {0, 1, 99, 100}) {
    const SendId id = Send(length);
    ASSERT_TRUE(has_data());
    EXPECT_EQ(Take(), "DATA " + std::to_string(id.value) + " @0+" + std::to_string(length) + " last");
    EXPECT_FALSE(has_data());
    sender.Release(id);
  }
  EXPECT_EQ(sends.size(), 0u);
}

TEST_F(ImpiSender, TheHeaderSaysWhatTheEnvelopeSays) {
  const Envelope envelope{.context = 18446744073709551600u, .rank = 3, .tag = 9, .length = 8, .count = 2, .datatype = 77};
  const SendId id = sender.Send(envelope, false);
  Outgoing out;
  EXPECT_EQ(sender.TakeData(true, out), (Packet{.type = PacketType::kData,
                                          .data_length = 8,
                                          .source_request = id.value,
                                          .message_length = 8,
                                          .source_rank = 3,
                                          .tag = 9,
                                          .context = 18446744073709551600u,
                                          .sequence = 1,
                                          .count = 2,
                                          .datatype = 77}));
}

TEST_F(ImpiSender, LongMessagesWaitForSyncAckAfterTheFirstPacket) {
  for (const uint64_t length : {101, 200, 201, 250}) {
    const SendId id = Send(length);
    const std::string number = std::to_string(id.value);
    EXPECT_EQ(Take(), "DATASYNC " + number + " @0+100");
    EXPECT_FALSE(has_data());
    EXPECT_EQ(Ack(id), Kind::kSynchronized);
    for (uint64_t at = 100; at < length; at += 100) {
      const uint64_t bytes = std::min<uint64_t>(100, length - at);
      EXPECT_EQ(Take(), "DATA " + number + " @" + std::to_string(at) + "+" + std::to_string(bytes) + (at + bytes == length ? " last" : ""));
    }
    EXPECT_FALSE(has_data());
    sender.Release(id);
  }
  EXPECT_EQ(sends.size(), 0u);
}

TEST_F(ImpiSender, TheReceiversNumberIsInAllPacketsButTheFirst) {
  const SendId id = Send(300);
  Outgoing out;
  EXPECT_EQ(sender.TakeData(true, out).destination_request, 0u);
  ASSERT_TRUE(sender.OnSyncAck({.type = PacketType::kSyncAck, .source_request = id.value, .destination_request = 0xfedcba9876543210}).ok());
  EXPECT_EQ(sender.TakeData(true, out).destination_request, 0xfedcba9876543210);
  EXPECT_EQ(sender.TakeData(true, out).destination_request, 0xfedcba9876543210);
  EXPECT_TRUE(out.last);
}

TEST_F(ImpiSender, SynchronousMessagesAreDataSyncEvenIfEmpty) {
  const SendId empty = Send(0, true), full = Send(100, true);
  EXPECT_EQ(Take(), "DATASYNC " + std::to_string(empty.value) + " @0+0 last");
  EXPECT_EQ(Take(), "DATASYNC " + std::to_string(full.value) + " @0+100 last");
  EXPECT_EQ(Ack(full), Kind::kSynchronized);
  EXPECT_EQ(Ack(empty), Kind::kSynchronized);
  EXPECT_FALSE(has_data());
}

TEST_F(ImpiSender, PacketsOfOneMessageHaveOneSequenceNumber) {
  Send(10);
  const SendId id = Send(150);
  Outgoing out;
  EXPECT_EQ(sender.TakeData(true, out).sequence, 1u);
  EXPECT_EQ(sender.TakeData(true, out).sequence, 2u);
  Send(5);
  EXPECT_EQ(sender.TakeData(true, out).sequence, 3u);
  Ack(id);
  EXPECT_EQ(sender.TakeData(true, out).sequence, 2u);
}

TEST_F(ImpiSender, FirstPacketsKeepTheirOrderAndTakeTurnsWithTheRestOfLongMessages) {
  const SendId big = Send(300);
  Take();
  const SendId one = Send(1), two = Send(2);
  Ack(big);
  const auto line = [](SendId id, const char* where) { return "DATA " + std::to_string(id.value) + where; };
  EXPECT_EQ(Take(), line(big, " @100+100"));
  EXPECT_EQ(Take(), line(one, " @0+1 last"));
  EXPECT_EQ(Take(), line(big, " @200+100 last"));
  EXPECT_EQ(Take(), line(two, " @0+2 last"));
}

TEST_F(ImpiSender, RestsGoOnWhileFirstPacketsHaveToWait) {
  const SendId big = Send(300);
  Take();
  Send(1);
  Ack(big);
  Outgoing out;
  for (int i = 0; i < 2; ++i) {
    sender.TakeData(false, out);
    EXPECT_EQ(out.send, big);
  }
  EXPECT_FALSE(sender.has_rests());
  EXPECT_TRUE(sender.has_firsts());
}

TEST_F(ImpiSender, ForLamLongMessagesAreInOnePiece) {
  Sender lam(kPeer, Peer::kLam, kDataLength, sends);
  const auto send = [&](uint64_t length) { return lam.Send({.length = length}, false); };
  const SendId first = send(300), second = send(300);
  Outgoing out;
  lam.TakeData(true, out);
  lam.TakeData(true, out);
  const SendId small = send(1);
  for (const SendId id : {second, first}) ASSERT_TRUE(lam.OnSyncAck({.type = PacketType::kSyncAck, .source_request = id.value}).ok());
  std::vector<SendId> order;
  for (; (lam.has_firsts() || lam.has_rests()); order.push_back(out.send)) lam.TakeData(true, out);
  EXPECT_EQ(order, (std::vector<SendId>{second, second, first, first, small}));
}

TEST_F(ImpiSender, AReleasedMessageIsSentAllTheSame) {
  const SendId id = Send(150);
  sender.Release(id);
  Take();
  Ack(id);
  EXPECT_EQ(sends.size(), 1u);
  Take();
  EXPECT_EQ(sends.size(), 0u);
}

TEST_F(ImpiSender, SyncAcksThatNobodyAskedForAreNamed) {
  EXPECT_EQ(WhyNotAck(SendId(5)), "pk_srqid is 5, which is no message to it that waits for an answer");
  const SendId queued = Send(1, true);
  EXPECT_EQ(WhyNotAck(queued), "pk_srqid is " + std::to_string(queued.value) + ", a message that was not sent yet");
  Take();
  Ack(queued);
  EXPECT_EQ(WhyNotAck(queued), "pk_srqid is " + std::to_string(queued.value) + ", a message that has its SYNCACK already");
  const SendId eager = Send(1);
  Take();
  EXPECT_EQ(WhyNotAck(eager), "pk_srqid is " + std::to_string(eager.value) + ", a message that asked for no SYNCACK");
  const SendId big = Send(150);
  Take();
  Ack(big);
  EXPECT_EQ(WhyNotAck(big), "pk_srqid is " + std::to_string(big.value) + ", a message that has its SYNCACK already");
  Take();
  EXPECT_EQ(WhyNotAck(big), "pk_srqid is " + std::to_string(big.value) + ", a message that has its SYNCACK already");
  EXPECT_FALSE(has_data()) << "a second SYNCACK sends nothing a second time";
  sender.Release(big);
  EXPECT_EQ(WhyNotAck(big), "pk_srqid is " + std::to_string(big.value) + ", which is no message to it that waits for an answer");
}

TEST_F(ImpiSender, AnotherPeerCannotAcknowledge) {
  const SendId id = Send(150);
  Take();
  Sender other(PeerId(4), Peer::kStandard, kDataLength, sends);
  const auto event = other.OnSyncAck({.type = PacketType::kSyncAck, .source_request = id.value});
  ASSERT_FALSE(event.ok());
  EXPECT_STREQ(event.error().field, "pk_srqid");
  EXPECT_EQ(Ack(id), Kind::kSynchronized);
}

}  // namespace
}  // namespace weft::impi
