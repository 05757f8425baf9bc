#ifndef MPI_HYBRID_P2P_TESTING_ENGINE_SUITE_H_
#define MPI_HYBRID_P2P_TESTING_ENGINE_SUITE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "mpi_hybrid/p2p/testing/message_suite.h"
#include "mpi_hybrid/p2p/testing/process.h"

namespace weft::mpi::testing {

// Tests what is seen of the engine's own protocol, on any carrier of its frames, which has to pass MessageSuite, too. The parameter is that of
// MessageSuite.
template <typename Pair>
class EngineSuite : public ::testing::Test {};

TYPED_TEST_SUITE_P(EngineSuite);

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

REGISTER_TYPED_TEST_SUITE_P(EngineSuite, ASenderWhoseMessagesNobodyReceivesStopsToSendThem,
                            AnExcuseIsTheErrorOfADeathAndTheNextMessageArrives, StridedDataGoWithoutPacking,
                            AGoodbyeIsNotADeath, CreditThatACancelledSendWouldHaveBroughtGoesWithTheNext);

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_ENGINE_SUITE_H_
