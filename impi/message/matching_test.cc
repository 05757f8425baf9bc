#include "impi/message/matching.h"

#include <gtest/gtest.h>

namespace weft::impi {
namespace {

constexpr PeerId kOne(1), kTwo(2);
constexpr uint64_t kContext = 4;

std::optional<MessageId> Message(uint64_t id) { return MessageId(id); }
std::optional<ReceiveId> Receive(uint64_t id) { return ReceiveId(id); }

TEST(ImpiMatching, ContextSourceAndTagDecide) {
  Matching matching;
  EXPECT_EQ(matching.Arrived(MessageId(10), kOne, kContext, 7), std::nullopt);
  EXPECT_EQ(matching.Post(ReceiveId(1), {.context = 5, .source = kOne, .tag = 7}), std::nullopt);
  EXPECT_EQ(matching.Post(ReceiveId(2), {.context = kContext, .source = kTwo, .tag = 7}), std::nullopt);
  EXPECT_EQ(matching.Post(ReceiveId(3), {.context = kContext, .source = kOne, .tag = 8}), std::nullopt);
  EXPECT_EQ(matching.Post(ReceiveId(4), {.context = kContext, .source = kOne, .tag = 7}), Message(10));
  EXPECT_EQ(matching.held(), 0u);
  EXPECT_EQ(matching.Arrived(MessageId(11), kOne, kContext, 8), Receive(3));
  EXPECT_EQ(matching.Arrived(MessageId(12), kTwo, kContext, 7), Receive(2));
  EXPECT_EQ(matching.Arrived(MessageId(13), kOne, 5, 7), Receive(1));
  EXPECT_EQ(matching.posted(), 0u);
}

TEST(ImpiMatching, MessagesOfOnePairDoNotOvertake) {
  const Wanted exact{.context = kContext, .source = kOne, .tag = 7}, any_tag{.context = kContext, .source = kOne}, any{.context = kContext};
  for (const Wanted& wanted : {exact, any_tag, any}) {
    Matching matching;
    for (uint64_t id = 10; id < 15; ++id) matching.Arrived(MessageId(id), kOne, kContext, 7);
    for (uint64_t id = 10; id < 15; ++id) EXPECT_EQ(matching.Post(ReceiveId(id), wanted), Message(id));
    for (uint64_t id = 20; id < 25; ++id) matching.Post(ReceiveId(id), wanted);
    for (uint64_t id = 20; id < 25; ++id) EXPECT_EQ(matching.Arrived(MessageId(id), kOne, kContext, 7), Receive(id));
  }
}

TEST(ImpiMatching, TheEarliestReceiveThatTakesAMessageGetsIt) {
  Matching matching;
  matching.Post(ReceiveId(1), {.context = kContext, .source = kTwo});
  matching.Post(ReceiveId(2), {.context = kContext, .tag = 8});
  matching.Post(ReceiveId(3), {.context = kContext});
  matching.Post(ReceiveId(4), {.context = kContext, .source = kOne, .tag = 7});
  EXPECT_EQ(matching.Arrived(MessageId(10), kOne, kContext, 7), Receive(3));
  EXPECT_EQ(matching.Arrived(MessageId(11), kOne, kContext, 7), Receive(4));
}

TEST(ImpiMatching, AProbeLeavesTheMessageAndAMatchedProbeTakesItOut) {
  Matching matching;
  const Wanted wanted{.context = kContext, .tag = 7};
  EXPECT_EQ(matching.Probe(wanted), std::nullopt);
  matching.Arrived(MessageId(10), kOne, kContext, 7);
  matching.Arrived(MessageId(11), kTwo, kContext, 7);
  EXPECT_EQ(matching.Probe(wanted), Message(10));
  EXPECT_EQ(matching.Probe(wanted), Message(10));
  EXPECT_TRUE(matching.TakeOut(MessageId(10)));
  EXPECT_FALSE(matching.TakeOut(MessageId(10)));
  EXPECT_EQ(matching.Post(ReceiveId(1), wanted), Message(11));
}

TEST(ImpiMatching, ACancelledReceiveTakesNothing) {
  Matching matching;
  matching.Post(ReceiveId(1), {.context = kContext});
  EXPECT_TRUE(matching.CancelReceive(ReceiveId(1)));
  EXPECT_EQ(matching.Arrived(MessageId(10), kOne, kContext, 7), std::nullopt);
  EXPECT_FALSE(matching.CancelReceive(ReceiveId(1)));
}

TEST(ImpiMatching, APeerThatIsGoneLeavesNothing) {
  Matching matching;
  matching.Arrived(MessageId(10), kOne, kContext, 7);
  matching.Arrived(MessageId(11), kTwo, kContext, 7);
  matching.Post(ReceiveId(1), {.context = kContext, .source = kOne, .tag = 8});
  matching.Post(ReceiveId(2), {.context = kContext, .source = kTwo, .tag = 8});
  matching.Post(ReceiveId(3), {.context = kContext, .tag = 8});
  EXPECT_EQ(matching.Lose(kOne), std::vector<ReceiveId>{ReceiveId(1)});
  EXPECT_EQ(matching.posted(), 2u);
  EXPECT_EQ(matching.Probe({.context = kContext}), Message(11));
}

}  // namespace
}  // namespace weft::impi
