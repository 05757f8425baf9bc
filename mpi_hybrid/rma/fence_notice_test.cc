#include "mpi_hybrid/rma/fence_notice.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace weft::mpi::rma {
namespace {

using Asker = FenceNotice::Asker;
using Answer = FenceNotice::Answer;

// Two ranks, and the two connections between them: one of each rank, with its messages, and the replies to the other rank's. Each direction of each
// delivers in order, at any time.
struct Rank {
  FenceNotice notice;
  uint32_t number = 0;  // of its fence
  uint32_t heard = 0;   // the other one's last fence that it knows of
  int packets = 0;
  int unanswered = 0;  // of its own messages that want a reply
  struct Message {
    FenceNotice::Entry entry;
    bool wants_reply;
  };
  struct Reply {
    uint32_t number;
    ReplyStatus status;
    bool asked;  // by the message that it answers
  };
  std::deque<Message> messages;  // on their way to the other rank
  std::deque<Reply> replies;     // to the other rank's messages, on their way
};

struct Pair {
  Rank ranks[2];

  bool Passed(int me) const { return ranks[me].heard >= ranks[me].number; }
  // A reply's slot is the fence's number, and its connection whether the message asked.
  void Send(Rank& rank, const std::optional<Answer>& answer) {
    if (!answer) return;
    rank.replies.push_back({answer->to.slot, answer->status, answer->to.connection != 0});
    ++rank.packets;
  }
  // `consumed`: the message wants a reply in any case.
  void Enter(int me, bool operations, bool gets, bool consumed = false) {
    Rank& rank = ranks[me];
    const FenceNotice::Entry entry = rank.notice.Enter(operations, gets);
    EXPECT_EQ(entry.number, ++rank.number);
    Send(rank, entry.answer);
    if (!entry.message) return;
    rank.messages.push_back({entry, entry.asks || consumed});
    rank.unanswered += entry.asks || consumed;
    ++rank.packets;
  }
  bool DeliverMessage(int to) {
    Rank &from = ranks[1 - to], &rank = ranks[to];
    if (from.messages.empty()) return false;
    const Rank::Message message = from.messages.front();
    from.messages.pop_front();
    std::optional<Asker> asker;
    if (message.wants_reply) asker = {message.entry.asks, static_cast<uint16_t>(message.entry.number)};
    std::optional<Answer> answer;
    EXPECT_TRUE(rank.notice.OnMessage(message.entry.number, message.entry.promises, asker, &answer));
    Send(rank, answer);
    rank.heard = std::max(rank.heard, message.entry.number);
    return true;
  }
  bool DeliverReply(int to) {
    Rank &from = ranks[1 - to], &rank = ranks[to];
    if (from.replies.empty()) return false;
    const Rank::Reply reply = from.replies.front();
    from.replies.pop_front();
    --rank.unanswered;
    if (reply.asked && rank.notice.OnReply(reply.number, reply.status)) rank.heard = std::max(rank.heard, reply.number);
    return true;
  }
  void DeliverAll() {
    while (DeliverMessage(0) | DeliverMessage(1) | DeliverReply(0) | DeliverReply(1)) {
    }
  }
  void Fence(bool gets_0, bool gets_1) {
    Enter(0, gets_0, gets_0);
    Enter(1, gets_1, gets_1);
    DeliverAll();
    ASSERT_TRUE(Passed(0) && Passed(1));
  }
  // Rank 0 gets, until it has promised to ask.
  void GetUntilPromised() {
    Fence(true, false);
    Fence(true, false);
  }
  bool SendsMessage(int me) {
    Enter(me, false, false);
    return !ranks[me].messages.empty();
  }
};

TEST(FenceNoticeTest, WithoutGetsEachRankSendsOneMessage) {
  Pair pair;
  for (int i = 0; i < 5; ++i) pair.Fence(false, false);
  EXPECT_EQ(pair.ranks[0].packets, 5);
  EXPECT_EQ(pair.ranks[1].packets, 5);
}

TEST(FenceNoticeTest, ARankThatGetsInEachEpochHasTheNoticeAsItsReply) {
  Pair pair;
  pair.GetUntilPromised();
  EXPECT_FALSE(pair.SendsMessage(1));
  EXPECT_TRUE(pair.ranks[1].replies.empty());
  pair.Enter(0, true, true);
  pair.DeliverMessage(1);
  EXPECT_TRUE(pair.Passed(1));
  EXPECT_TRUE(pair.DeliverReply(0));
  EXPECT_TRUE(pair.Passed(0));
}

TEST(FenceNoticeTest, EveryOtherEpochWithGetsIsNoReasonToPromise) {
  Pair pair;
  for (int i = 0; i < 10; ++i) pair.Fence(i % 2 == 0, false);
  EXPECT_EQ(pair.ranks[0].packets, 10);
  EXPECT_EQ(pair.ranks[1].packets, 10);
}

TEST(FenceNoticeTest, ARankThatCameFirstIsToldWhenTheOtherOneComes) {
  Pair pair;
  pair.GetUntilPromised();
  pair.Enter(0, true, true);
  pair.DeliverAll();
  EXPECT_FALSE(pair.Passed(0)) << "the other rank is not in the fence";
  EXPECT_FALSE(pair.SendsMessage(1));
  pair.DeliverAll();
  EXPECT_TRUE(pair.Passed(0));
  EXPECT_TRUE(pair.Passed(1));
}

TEST(FenceNoticeTest, ARankWithOperationsOfItsOwnSendsItsNoticeBehindThem) {
  Pair pair;
  pair.GetUntilPromised();
  pair.Enter(1, /*operations=*/true, false);
  EXPECT_EQ(pair.ranks[1].messages.size(), 1u);
  pair.Enter(0, true, true);
  pair.DeliverAll();
  EXPECT_TRUE(pair.Passed(0) && pair.Passed(1));
  EXPECT_EQ(pair.ranks[0].unanswered, 0);
  pair.Fence(true, false);  // this one was promised before the reply was known
  EXPECT_TRUE(pair.SendsMessage(1)) << "no promise soon after both had operations";
}

TEST(FenceNoticeTest, APromiseIsKeptInAnEpochWithoutGets) {
  Pair pair;
  pair.GetUntilPromised();
  pair.Fence(false, false);
  pair.Fence(false, false);
  EXPECT_EQ(pair.ranks[1].packets, 4);
  EXPECT_TRUE(pair.SendsMessage(1));
}

TEST(FenceNoticeTest, AReplyThatTellsOfConsumedMessagesIsNoNotice) {
  Pair pair;
  pair.Enter(0, false, false, /*consumed=*/true);
  pair.DeliverAll();
  EXPECT_FALSE(pair.Passed(0));
  EXPECT_EQ(pair.ranks[0].unanswered, 0);
}

TEST(FenceNoticeTest, RefusesAFenceThatWasToldBefore) {
  FenceNotice notice;
  std::optional<Answer> answer;
  EXPECT_FALSE(notice.OnMessage(0, false, {}, &answer));
  EXPECT_TRUE(notice.OnMessage(1, false, {}, &answer));
  EXPECT_FALSE(notice.OnMessage(1, false, {}, &answer));
  EXPECT_FALSE(notice.OnMessage(0, false, {}, &answer));
  EXPECT_FALSE(notice.OnMessage(1u << 31 | 1, false, {}, &answer)) << "numbers wrap";
  EXPECT_FALSE(answer);
}

TEST(FenceNoticeTest, RefusesAMessageThatDoesNotKeepThePromise) {
  for (const bool asks : {false, true}) {
    FenceNotice notice;
    std::optional<Answer> answer;
    notice.Enter(false, false);
    ASSERT_TRUE(notice.OnMessage(1, /*promises=*/true, {}, &answer));
    const std::optional<Asker> asker = asks ? std::optional<Asker>({1, 2}) : std::nullopt;
    EXPECT_FALSE(notice.OnMessage(asks ? 3 : 2, false, asker, &answer));
    EXPECT_FALSE(answer);
  }
}

TEST(FenceNoticeTest, ManyFencesMayBeToldByRepliesAlone) {
  FenceNotice notice;
  std::optional<Answer> answer;
  ASSERT_TRUE(notice.OnMessage(1, false, {}, &answer));
  for (uint32_t number : {1u << 30, 2u << 30, 3u << 30}) EXPECT_TRUE(notice.OnReply(number, ReplyStatus::kDone));
  EXPECT_TRUE(notice.OnMessage((3u << 30) + 1, false, {}, &answer));
}

// No rank waits for ever, and none passes a fence that the other one has not come to, whatever is delivered when. `ahead`: a rank whose fence failed goes on
// without having passed it.
void RunInRandomOrder(uint32_t seed, bool ahead) {
  std::mt19937 random(seed);
  Pair pair;
  constexpr uint32_t kFences = 200;
  for (int idle = 0; pair.ranks[0].number < kFences || pair.ranks[1].number < kFences || !pair.Passed(0) || !pair.Passed(1);) {
    ASSERT_LT(++idle, 20000) << "a rank waits for ever";
    const int rank = static_cast<int>(random() % 2);
    switch (random() % 3) {
      case 0:
        if (pair.ranks[rank].number < kFences && (pair.Passed(rank) || (ahead && random() % 16 == 0))) {
          const bool operations = random() % 8 < (rank == 0 ? 7 : seed % 4);
          pair.Enter(rank, operations, operations && random() % 8 != 0, random() % 4 == 0);
        }
        break;
      case 1:
        pair.DeliverMessage(rank);
        break;
      default:
        pair.DeliverReply(rank);
    }
    for (int me : {0, 1}) {
      ASSERT_LE(pair.ranks[me].heard, pair.ranks[1 - me].number);
      if (!ahead) {
        ASSERT_LE(pair.ranks[me].number, pair.ranks[1 - me].number + 1);
      }
    }
  }
  pair.DeliverAll();
  for (int me : {0, 1}) ASSERT_EQ(pair.ranks[me].unanswered, 0);
}

TEST(FenceNoticeTest, RanksPassEachFenceTogetherInAnyOrderOfEvents) {
  for (uint32_t seed = 0; seed < 300 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RunInRandomOrder(seed, false);
  }
}

TEST(FenceNoticeTest, ARankWhoseFencesFailMayBeAhead) {
  for (uint32_t seed = 0; seed < 300 && !testing::Test::HasFatalFailure(); ++seed) {
    SCOPED_TRACE(seed);
    RunInRandomOrder(seed, true);
  }
}

}  // namespace
}  // namespace weft::mpi::rma
