#include "impi/message/receiver.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::impi {
namespace {

using Kind = Event::Kind;

constexpr uint32_t kDataLength = 100;  // bytes
constexpr PeerId kPeer(3);
constexpr uint64_t kMuch = 1 << 20;  // bytes, of a receive

class ImpiReceiver : public testing::Test {
 protected:
  static Packet First(PacketType type, uint64_t number, uint64_t length) {
    return {.type = type,
            .data_length = static_cast<uint32_t>(std::min<uint64_t>(length, kDataLength)),
            .source_request = number,
            .message_length = length,
            .source_rank = 1,
            .tag = 7,
            .context = 4};
  }
  static Packet Rest(MessageId id, uint64_t number, uint64_t length, uint32_t bytes) {
    Packet packet = First(PacketType::kData, number, length);
    packet.data_length = bytes;
    packet.destination_request = id.value;
    return packet;
  }
  Event On(const Packet& packet) {
    const auto event = receiver.OnData(packet);
    EXPECT_TRUE(event.ok()) << event.error().field << " " << event.error().why;
    return event.ok() ? *event : Event{};
  }
  std::string WhyNot(const Packet& packet) {
    const auto event = receiver.OnData(packet);
    return event.ok() ? "" : event.error().field + (" " + event.error().why);
  }
  Matched Match(MessageId id, uint64_t room = kMuch) {
    answer.reset();
    return receiver.Match(id, room, answer);
  }
  // Of a long message that was matched.
  MessageId Begin(uint64_t number, uint64_t length, uint64_t room = kMuch) {
    const MessageId id = On(First(PacketType::kDataSync, number, length)).message;
    EXPECT_FALSE(Match(id, room).whole);
    return id;
  }

  Handles<Inbound> messages;
  FlowIn flow{{.ack_mark = 10, .high_water = 20}, kDataLength};
  Receiver receiver{kPeer, flow, messages};
  std::optional<Answer> answer;
};

TEST_F(ImpiReceiver, AShortMessageIsWholeAtOnce) {
  for (const uint64_t length : {0, 1, 100}) {
    const Event event = On(First(PacketType::kData, 5, length));
    EXPECT_EQ(event.kind, Kind::kMessage);
    EXPECT_EQ(event.peer, kPeer);
    EXPECT_EQ(event.length, length);
    EXPECT_EQ(event.keep, length);
    EXPECT_TRUE(event.last);
    EXPECT_EQ(messages.Get(event.message.value).envelope, (Envelope{.context = 4, .rank = 1, .tag = 7, .length = length}));
    EXPECT_TRUE(Match(event.message).whole);
    EXPECT_FALSE(answer);
  }
  EXPECT_EQ(messages.size(), 0u);
  EXPECT_EQ(flow.held(), 0u);
}

TEST_F(ImpiReceiver, ASynchronousMessageIsAcknowledgedWhenItIsMatched) {
  const Event event = On(First(PacketType::kDataSync, 5, 10));
  EXPECT_TRUE(event.last);
  Match(event.message);
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->type, PacketType::kSyncAck);
  EXPECT_EQ(answer->source_request, 5u);
  EXPECT_EQ(answer->destination_request, 0u) << "nothing follows that would name it";
}

TEST_F(ImpiReceiver, PacketsOfLongMessagesMayMixWithOthers) {
  const MessageId one = Begin(5, 250);
  EXPECT_EQ(answer->destination_request, one.value);
  const MessageId two = Begin(6, 201);
  Event event = On(Rest(one, 5, 250, 100));
  EXPECT_EQ(event.kind, Kind::kPart);
  EXPECT_EQ(event.message, one);
  EXPECT_EQ(event.offset, 100u);
  EXPECT_FALSE(event.last);
  On(First(PacketType::kData, 7, 30));
  event = On(Rest(two, 6, 201, 100));
  EXPECT_EQ(event.message, two);
  EXPECT_EQ(event.offset, 100u);
  event = On(Rest(one, 5, 250, 50));
  EXPECT_EQ(event.offset, 200u);
  EXPECT_TRUE(event.last);
  event = On(Rest(two, 6, 201, 1));
  EXPECT_TRUE(event.last);
  EXPECT_EQ(messages.size(), 1u);
}

// The sender chooses how much of the limit it uses.
TEST_F(ImpiReceiver, PacketsNeedNotBeFull) {
  Packet first = First(PacketType::kDataSync, 5, 250);
  first.data_length = 1;
  const MessageId id = On(first).message;
  Match(id);
  EXPECT_EQ(On(Rest(id, 5, 250, 99)).offset, 1u);
  EXPECT_EQ(On(Rest(id, 5, 250, 100)).offset, 100u);
  EXPECT_TRUE(On(Rest(id, 5, 250, 50)).last);
}

TEST_F(ImpiReceiver, WhatAReceiveHasNoRoomForIsCutOff) {
  for (const uint64_t room : {0, 50, 99, 100, 101, 150, 199, 200, 249}) {
    const MessageId id = On(First(PacketType::kDataSync, 5, 250)).message;
    EXPECT_TRUE(Match(id, room).truncated) << room;
    uint64_t kept = std::min<uint64_t>(room, 100);
    for (const uint32_t bytes : {100, 50}) {
      const Event event = On(Rest(id, 5, 250, bytes));
      EXPECT_EQ(event.length, bytes);
      EXPECT_TRUE(event.keep == 0 || event.offset == kept);
      kept += event.keep;
    }
    EXPECT_EQ(kept, room);
  }
  EXPECT_FALSE(Match(On(First(PacketType::kDataSync, 5, 250)).message, 250).truncated);
}

TEST_F(ImpiReceiver, DataThatFitsNoMessageIsNamed) {
  const MessageId id = Begin(5, 250);
  const std::string number = std::to_string(id.value);
  EXPECT_EQ(WhyNot(Rest(MessageId(99), 5, 250, 100)), "pk_drqid is 99, which is no message of it of which data is missing");
  EXPECT_EQ(WhyNot(Rest(MessageId(0), 5, 250, 100)), "pk_drqid is 0, which is no message of it of which data is missing");
  EXPECT_EQ(WhyNot(Rest(id, 6, 250, 100)), "pk_srqid is 6; the message began with 5");
  EXPECT_EQ(WhyNot(Rest(id, 5, 251, 100)), "pk_msglen is 251; the message began with 250");
  EXPECT_EQ(WhyNot(Rest(id, 5, 250, 0)), "pk_len is 0; the message lacks 150 bytes");
  On(Rest(id, 5, 250, 100));
  EXPECT_EQ(WhyNot(Rest(id, 5, 250, 51)), "pk_len is 51; the message lacks 50 bytes");
  EXPECT_TRUE(On(Rest(id, 5, 250, 50)).last);
  EXPECT_EQ(WhyNot(Rest(id, 5, 250, 50)), "pk_drqid is " + number + ", which is no message of it of which data is missing") << "it is finished";
}

TEST_F(ImpiReceiver, DataBeforeSyncAckIsRefused) {
  const MessageId id = On(First(PacketType::kDataSync, 5, 250)).message;
  EXPECT_EQ(WhyNot(Rest(id, 5, 250, 100)), "pk_drqid is " + std::to_string(id.value) + ", a message for which no SYNCACK was sent");
}

TEST_F(ImpiReceiver, AnotherPeerCannotContinueAMessage) {
  const MessageId id = Begin(5, 250);
  Receiver other(PeerId(4), flow, messages);
  EXPECT_FALSE(other.OnData(Rest(id, 5, 250, 100)).ok());
  EXPECT_EQ(On(Rest(id, 5, 250, 100)).offset, 100u);
}

TEST_F(ImpiReceiver, WhatIsHeldIsChargedUntilItIsMatched) {
  const MessageId one = On(First(PacketType::kDataSync, 5, 250)).message, two = On(First(PacketType::kData, 5, 10)).message;
  EXPECT_EQ(flow.held(), 200u);
  Match(two);
  EXPECT_EQ(flow.held(), 100u);
  Match(one);
  EXPECT_EQ(flow.held(), 0u) << "the rest of it goes to its place";
}

TEST_F(ImpiReceiver, DiscardedMessagesAreVoidAndLaterOnesAreDropped) {
  const MessageId matched = Begin(5, 250), held = On(First(PacketType::kDataSync, 6, 250)).message;
  receiver.Discard();
  EXPECT_EQ(messages.Find(held.value), nullptr);
  EXPECT_EQ(flow.held(), 0u);
  const Event event = On(First(PacketType::kDataSync, 7, 250));
  EXPECT_EQ(event.kind, Kind::kDropped);
  EXPECT_EQ(event.length, 100u);
  EXPECT_EQ(messages.size(), 1u);
  On(Rest(matched, 5, 250, 100));
  EXPECT_TRUE(On(Rest(matched, 5, 250, 50)).last) << "what a receive has comes to its end";
}

}  // namespace
}  // namespace weft::impi
