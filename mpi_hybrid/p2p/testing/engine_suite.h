#ifndef MPI_HYBRID_P2P_TESTING_ENGINE_SUITE_H_
#define MPI_HYBRID_P2P_TESTING_ENGINE_SUITE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {

// Tests the properties of the engine, on any carrier of its frames. The parameter is a job of two processes:
//
//   struct Pair {
//     explicit Pair(const EngineLimits& limits, unsigned seed = 1);
//     void Step(size_t most);             // moves something or nothing; of a stream, at most so many bytes
//     void Settle(size_t most = 100000);  // steps until nothing moves any more
//     Process a, b;                       // ranks 0 and 1
//     std::mt19937 random;
//   };
template <typename Pair>
class EngineSuite : public ::testing::Test {};

TYPED_TEST_SUITE_P(EngineSuite);

TYPED_TEST_P(EngineSuite, MessagesOfEverySizeArriveBeforeAndAfterTheirReceiveInAnyPieces) {
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
TYPED_TEST_P(EngineSuite, RandomTrafficMatchesInOrderWhateverTheTiming) {
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

TYPED_TEST_P(EngineSuite, ASenderWhoseMessagesNobodyReceivesStopsToSendThem) {
  TypeParam pair(kSmall);
  const auto data = Data(200, 1);
  std::vector<Request*> sends;
  for (int i = 0; i < 1000; ++i) sends.push_back(pair.a.Send(data, 1));
  pair.Settle();
  const auto done = std::count_if(sends.begin(), sends.end(), [](Request* send) { return send->complete; });
  EXPECT_EQ(done, static_cast<long>(kSmall.window) / Link::CostOf(200));
  for (Request* send : sends) {
    std::vector<uint8_t> got(200);
    Request* receive = pair.b.Receive(got, 0, 1);
    pair.Settle();
    ASSERT_TRUE(receive->complete);
    ASSERT_EQ(got, data);
    receive->Release();
    ASSERT_TRUE(send->complete);
    send->Release();
  }
  // All credit has come back, except an amount too small for a frame.
  Request* last = pair.a.Send(data, 1);
  pair.Settle();
  EXPECT_TRUE(last->complete);
  last->Release();
}

// With and without credit; the receive is posted before, or not.
TYPED_TEST_P(EngineSuite, AnExcuseIsTheErrorOfADeathAndTheNextMessageArrives) {
  for (const int before : {0, 1000}) {
    for (const bool early : {false, true}) {
      TypeParam pair(kSmall);
      const auto data = Data(100, 1), nothing = Data(0, 1);
      std::vector<uint8_t> got(100), ignored(100);
      std::vector<Request*> requests;
      for (int i = 0; i < before; ++i) requests.push_back(pair.a.Send(data, 2));
      Request* receive = early ? pair.b.Receive(got, 0, 1) : nullptr;
      requests.push_back(pair.a.Send(nothing, 1, SendMode::kExcuse));
      requests.push_back(pair.a.Send(data, 1));
      pair.Settle(33);
      if (!early) receive = pair.b.Receive(got, 0, 1);
      pair.Settle(33);
      ASSERT_TRUE(receive->complete);
      EXPECT_EQ(receive->error.mpi_class(), MPIX_ERR_PROC_FAILED);
      requests.push_back(receive);
      requests.push_back(pair.b.Receive(got, 0, 1));
      for (int i = 0; i < before; ++i) requests.push_back(pair.b.Receive(ignored, 0, 2));
      pair.Settle();
      for (Request* request : requests) {
        ASSERT_TRUE(request->complete);
        EXPECT_TRUE(request == receive || request->error.ok());
        request->Release();
      }
      EXPECT_EQ(got, data);
    }
  }
}

TYPED_TEST_P(EngineSuite, TruncatedMessagesAreErrorsAndTheNextOnesArrive) {
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

TYPED_TEST_P(EngineSuite, SynchronousSendsCompleteWhenTheyAreMatched) {
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

TYPED_TEST_P(EngineSuite, StridedDataGoWithoutPacking) {
  const Ref<Datatype> column = MakeVector(100, 3, 10, Byte());
  for (size_t count : {0, 1, 3}) {
    for (size_t step : {1, 17, 5000}) {
      TypeParam pair(kSmall);
      const auto from = Data(4000, 2);
      std::vector<uint8_t> to(4000);
      Request *send, *receive;
      const auto n = static_cast<MPI_Aint>(count);
      ASSERT_TRUE(
          pair.b.engine.StartReceive(to.data(), n, *column, 0, 1, *pair.b.comm, Channel::kPointToPoint, &receive).ok());
      ASSERT_TRUE(pair.a.engine
                      .StartSend(from.data(), n, *column, 1, 1, *pair.a.comm, SendMode::kStandard,
                                 Channel::kPointToPoint, &send)
                      .ok());
      pair.Settle(step);
      ASSERT_TRUE(send->complete && receive->complete);
      std::vector<uint8_t> expected(4000);
      ASSERT_TRUE(CopyTyped(from.data(), n, *column, expected.data(), n, *column).ok());
      EXPECT_EQ(to, expected);
      send->Release();
      receive->Release();
    }
  }
}

TYPED_TEST_P(EngineSuite, MessagesToOneselfNeedNoLink) {
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

TYPED_TEST_P(EngineSuite, AGoodbyeIsNotADeath) {
  TypeParam pair(kSmall);
  std::vector<uint8_t> got(10);
  Request* receive = pair.a.Receive(got, 1, 1);
  pair.b.link().SendControl({.kind = FrameKind::kGoodbye});
  pair.Settle();
  ASSERT_TRUE(receive->complete);
  EXPECT_NE(receive->error.message().find("MPI_Finalize"), std::string::npos);
  EXPECT_FALSE(pair.a.engine.IsDead(1));
  receive->Release();
}

TYPED_TEST_P(EngineSuite, CreditThatACancelledSendWouldHaveBroughtGoesWithTheNext) {
  TypeParam pair(kSmall);
  for (int round = 0; round < 100; ++round) {
    // b owes credit to a for this message, and would return it with the message that it cancels.
    std::vector<uint8_t> data = Data(100, round), got(100);
    Request* requests[] = {pair.a.Send(data, 1), pair.b.Receive(got, 0, 1)};
    pair.Settle();
    Request* cancelled = pair.b.Send(data, 1);
    EXPECT_TRUE(cancelled->Cancel().ok());
    ASSERT_TRUE(cancelled->complete);
    cancelled->Release();
    for (Request* request : requests) {
      ASSERT_TRUE(request->complete);
      request->Release();
    }
  }
  std::vector<uint8_t> data = Data(100, 1), got(100);
  Request* requests[] = {pair.b.Send(data, 1), pair.a.Receive(got, 1, 1)};
  pair.Settle();
  for (Request* request : requests) request->Release();
  EXPECT_TRUE(pair.a.link().HasCredit(static_cast<int64_t>(kSmall.window)));
}

REGISTER_TYPED_TEST_SUITE_P(EngineSuite, MessagesOfEverySizeArriveBeforeAndAfterTheirReceiveInAnyPieces,
                            RandomTrafficMatchesInOrderWhateverTheTiming,
                            ASenderWhoseMessagesNobodyReceivesStopsToSendThem,
                            TruncatedMessagesAreErrorsAndTheNextOnesArrive, AnExcuseIsTheErrorOfADeathAndTheNextMessageArrives, SynchronousSendsCompleteWhenTheyAreMatched,
                            StridedDataGoWithoutPacking, MessagesToOneselfNeedNoLink, AGoodbyeIsNotADeath,
                            CreditThatACancelledSendWouldHaveBroughtGoesWithTheNext);

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_ENGINE_SUITE_H_
