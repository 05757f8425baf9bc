#include "mpi_hybrid/p2p/engine/matching.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <memory>
#include <random>
#include <vector>

namespace weft::mpi {
namespace {

bool Matches(const MatchKey& receive, const MatchKey& message) { return receive.Takes(message); }

MatchKey RandomKey(std::mt19937& random, bool wild) {
  MatchKey key = {static_cast<uint32_t>(random() % 2), static_cast<int>(random() % 3), static_cast<int>(random() % 4)};
  if (wild && random() % 3 == 0) key.source = MPI_ANY_SOURCE;
  if (wild && random() % 3 == 0) key.tag = MPI_ANY_TAG;
  return key;
}

TEST(PostedReceivesTest, FindsTheEarliestThatMatchesAsALinearSearchDoes) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    PostedReceives posted;
    struct Receive {
      MatchKey key;
      MatchHook hook;
    };
    std::list<Receive> reference;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 2) {
        Receive& receive = reference.emplace_back();
        receive.key = RandomKey(random, true);
        receive.hook.owner = &receive;
        posted.Append(receive.key, receive.hook);
        continue;
      }
      const MatchKey message = RandomKey(random, false);
      const auto expected = std::find_if(reference.begin(), reference.end(), [&](const Receive& r) { return Matches(r.key, message); });
      MatchHook* found = posted.Find(message);
      ASSERT_EQ(found == nullptr, expected == reference.end());
      if (found == nullptr) continue;
      ASSERT_EQ(found->owner, &*expected);
      if (random() % 2) continue;
      posted.Remove(*found);
      reference.erase(expected);
    }
  }
}

TEST(WaitingMessagesTest, FindsTheEarliestThatAReceiveMatchesAsALinearSearchDoes) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    WaitingMessages waiting;
    struct Waiting {
      MatchKey key;
      MessageHooks hooks;
    };
    std::list<Waiting> reference;
    for (int step = 0; step < 2000; ++step) {
      if (random() % 2) {
        Waiting& message = reference.emplace_back();
        message.key = RandomKey(random, false);
        waiting.Append(message.key, message.hooks, &message);
        continue;
      }
      const MatchKey receive = RandomKey(random, true);
      const auto expected = std::find_if(reference.begin(), reference.end(), [&](const Waiting& m) { return Matches(receive, m.key); });
      void* found = waiting.Find(receive);
      ASSERT_EQ(found == nullptr, expected == reference.end());
      if (found == nullptr) continue;
      ASSERT_EQ(found, &*expected);
      waiting.Remove(expected->hooks);
      reference.erase(expected);
      ASSERT_EQ(waiting.size(), reference.size());
    }
  }
}

TEST(KeyedQueuesTest, HoldsManyKeysAtOnce) {
  KeyedQueues queues;
  std::vector<MatchHook> hooks(5000);
  for (int i = 0; i < 5000; ++i) queues.Append({1, 2, i}, hooks[static_cast<size_t>(i)]);
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(queues.First({1, 2, i}), &hooks[static_cast<size_t>(i)]);
  for (MatchHook& hook : hooks) queues.Remove(hook);
  EXPECT_EQ(queues.First({1, 2, 3}), nullptr);
}

}  // namespace
}  // namespace weft::mpi
