#ifndef MPI_HYBRID_P2P_TESTING_MESSAGE_SUITE_H_
#define MPI_HYBRID_P2P_TESTING_MESSAGE_SUITE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {

// Tests what messages between two engines do, on any carrier, also one that translates the engine's frames into another protocol. The parameter
// is a job of two processes:
//
//   struct Pair {
//     explicit Pair(const EngineLimits& limits, unsigned seed = 1);
//     void Step(size_t most);             // moves something or nothing; of a stream, at most so many bytes
//     void Settle(size_t most = 100000);  // steps until nothing moves any more
//     Process a, b;                       // ranks 0 and 1
//     std::mt19937 random;
//   };
template <typename Pair>
class MessageSuite : public ::testing::Test {};

TYPED_TEST_SUITE_P(MessageSuite);

TYPED_TEST_P(MessageSuite, MessagesOfEverySizeArriveBeforeAndAfterTheirReceiveInAnyPieces) {
  for (size_t step : {1, 3, 40, 41, 1000}) {
    for (size_t length : {0, 1, 57, 58, 299, 300, 301, 400, 401, 5000}) {
      for (bool early : {false, true}) {
        SCOPED_TRACE(std::to_string(length) + " bytes in pieces of " + std::to_string(step) +
                     (early ? ", receive first" : ""));
        TypeParam pair(kSmall);
        const auto sent = Data(length, 3);
        std::vector<uint8_t> got(length);
        Request* receive = early ? pair.b.Receive(got, 0, 5) : nullptr;
        Request* send = pair.a.Send(sent, 5);
        pair.Settle(step);
        if (!early) receive = pair.b.Receive(got, 0, 5);
        pair.Settle(step);
        ASSERT_TRUE(send->complete);
        ASSERT_TRUE(receive->complete);
        EXPECT_TRUE(receive->error.ok());
        EXPECT_EQ(got, sent);
        EXPECT_EQ(receive->status.MPI_SOURCE, 0);
        EXPECT_EQ(receive->status.MPI_TAG, 5);
        EXPECT_EQ(GetCount(receive->status), static_cast<MPI_Count>(length));
        EXPECT_FALSE(pair.a.engine.HasUnfinishedSends());
        send->Release();
        receive->Release();
      }
    }
  }
}

// With one sender the result of matching does not depend on timing, so that it can be computed in advance.
TYPED_TEST_P(MessageSuite, RandomTrafficMatchesInOrderWhateverTheTiming) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    TypeParam pair(kSmall, seed);
    std::mt19937& random = pair.random;
    constexpr int kMessages = 60;
    std::vector<std::vector<uint8_t>> sent, got(kMessages, std::vector<uint8_t>(1000));
    std::vector<int> send_tags, receive_tags, receive_sources;
    for (int i = 0; i < kMessages; ++i) {
      sent.push_back(Data(random() % 3 == 0 ? random() % 1000 : random() % 60, i));
      send_tags.push_back(static_cast<int>(random() % 3));
      receive_tags.push_back(send_tags.back());
      receive_sources.push_back(random() % 3 == 0 ? MPI_ANY_SOURCE : 0);
    }
    std::shuffle(receive_tags.begin(), receive_tags.end(), random);
    for (int i = 0; i < kMessages; ++i) {
      if (random() % 4 == 0 && i > kMessages / 2) receive_tags[static_cast<size_t>(i)] = MPI_ANY_TAG;
    }
    std::vector<int> expected(kMessages, -1);  // index of the message that a receive gets
    for (int m = 0; m < kMessages; ++m) {
      for (int r = 0; r < kMessages; ++r) {
        const int tag = receive_tags[static_cast<size_t>(r)];
        if (expected[static_cast<size_t>(r)] >= 0 || (tag != MPI_ANY_TAG && tag != send_tags[static_cast<size_t>(m)]))
          continue;
        expected[static_cast<size_t>(r)] = m;
        break;
      }
    }
    std::vector<Request*> sends, receives;
    while (sends.size() < kMessages || receives.size() < kMessages) {
      if (sends.size() < kMessages && random() % 3 == 0) {
        const size_t i = sends.size();
        sends.push_back(
            pair.a.Send(sent[i], send_tags[i], random() % 4 == 0 ? SendMode::kSynchronous : SendMode::kStandard));
      }
      if (receives.size() < kMessages && random() % 3 == 0) {
        const size_t i = receives.size();
        receives.push_back(pair.b.Receive(got[i], receive_sources[i], receive_tags[i]));
      }
      pair.Step(random() % 2 ? 50 : 2000);
    }
    pair.Settle();
    for (size_t r = 0; r < kMessages; ++r) {
      ASSERT_EQ(receives[r]->complete, expected[r] >= 0) << r;
      if (expected[r] < 0) {
        EXPECT_TRUE(receives[r]->Cancel().ok());
        ASSERT_TRUE(receives[r]->complete);
        EXPECT_EQ(receives[r]->status.count_hi_and_cancelled & 1, 1);
      } else {
        const auto& data = sent[static_cast<size_t>(expected[r])];
        ASSERT_EQ(GetCount(receives[r]->status), static_cast<MPI_Count>(data.size())) << r;
        ASSERT_TRUE(std::equal(data.begin(), data.end(), got[r].begin())) << r;
      }
      receives[r]->Release();
    }
    // A send that was not received can be cancelled, unless it was eager and not synchronous.
    for (Request* send : sends) {
      if (!send->complete) {
        EXPECT_TRUE(send->Cancel().ok());
      }
    }
    pair.Settle();
    for (Request* send : sends) {
      ASSERT_TRUE(send->complete);
      send->Release();
    }
  }
}

TYPED_TEST_P(MessageSuite, TruncatedMessagesAreErrorsAndTheNextOnesArrive) {
  for (size_t length : {250, 3000}) {
    for (bool early : {false, true}) {
      TypeParam pair(kSmall);
      const auto sent = Data(length, 1), next = Data(10, 9);
      std::vector<uint8_t> got(100), guard(10);
      Request* receive = early ? pair.b.Receive(got, MPI_ANY_SOURCE, MPI_ANY_TAG) : nullptr;
      Request* send = pair.a.Send(sent, 1);
      Request* send_next = pair.a.Send(next, 1);
      pair.Settle(33);
      if (!early) receive = pair.b.Receive(got, MPI_ANY_SOURCE, MPI_ANY_TAG);
      Request* receive_next = pair.b.Receive(guard, 0, 1);
      pair.Settle(33);
      ASSERT_TRUE(receive->complete && receive_next->complete && send->complete && send_next->complete);
      EXPECT_EQ(receive->error.mpi_class(), MPI_ERR_TRUNCATE);
      EXPECT_TRUE(std::equal(got.begin(), got.end(), sent.begin()));
      EXPECT_TRUE(receive_next->error.ok());
      EXPECT_EQ(guard, next);
      for (Request* request : {receive, receive_next, send, send_next}) request->Release();
    }
  }
}

TYPED_TEST_P(MessageSuite, SynchronousSendsCompleteWhenTheyAreMatched) {
  for (size_t length : {0, 10, 1000}) {
    TypeParam pair(kSmall);
    const auto sent = Data(length, 1);
    Request* send = pair.a.Send(sent, 1, SendMode::kSynchronous);
    pair.Settle();
    EXPECT_FALSE(send->complete);
    std::vector<uint8_t> got(length);
    Request* receive = pair.b.Receive(got, 0, 1);
    pair.Settle();
    EXPECT_TRUE(send->complete && receive->complete);
    EXPECT_EQ(got, sent);
    send->Release();
    receive->Release();
  }
}

TYPED_TEST_P(MessageSuite, MessagesToOneselfNeedNoLink) {
  TypeParam pair(kSmall);
  for (size_t length : {0, 10, 5000}) {
    for (bool early : {false, true}) {
      const auto sent = Data(length, 1);
      std::vector<uint8_t> got(length);
      Request* receive = early ? pair.a.Receive(got, 0, 1) : nullptr;
      Request* send = pair.a.Send(sent, 1, SendMode::kStandard, 0);
      EXPECT_EQ(send->complete, early || length <= kSmall.eager);
      if (!early) receive = pair.a.Receive(got, MPI_ANY_SOURCE, 1);
      ASSERT_TRUE(send->complete && receive->complete);
      EXPECT_EQ(got, sent);
      send->Release();
      receive->Release();
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(MessageSuite, MessagesOfEverySizeArriveBeforeAndAfterTheirReceiveInAnyPieces,
                            RandomTrafficMatchesInOrderWhateverTheTiming,
                            TruncatedMessagesAreErrorsAndTheNextOnesArrive, SynchronousSendsCompleteWhenTheyAreMatched,
                            MessagesToOneselfNeedNoLink);

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_MESSAGE_SUITE_H_
