// A connection that is handed over while another thread gives it, or its queue pair, up. Over real sockets, since it takes threads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <thread>

#include "sim/testing/host.h"
#include "transport/tcp_network.h"

namespace weft::sim {
namespace {

using testing::Program;
using transport::SocketAddress;

class EstablishRace : public ::testing::TestWithParam<Llp> {
 protected:
  static constexpr int kRounds = 300;

  void TearDown() override { Settle(); }
  // The network's thread has done what it had to do.
  static void Settle() {
    std::promise<void> passed;
    transport::ProcessNetwork().Post([&] { passed.set_value(); });
    passed.get_future().wait();
  }
  // A request of `client` at `server`'s listener.
  std::shared_ptr<Endpoint> Request(Program& client, Program& server) {
    server.listener = rnic_.cm().Listen(*SocketAddress::Parse("127.0.0.1", 0), 8, false, true, server.cm).value();
    client.endpoint = rnic_.cm().CreateEndpoint();
    EXPECT_EQ(client.endpoint->Connect(*SocketAddress::Parse("127.0.0.1", 0), server.listener->local_address(), client.qp.handle(),
                                       {.ird = 1, .ord = 1}),
              0);
    return server.cm->Wait().endpoint;
  }
  // Runs both at once, `second` a growing moment after `first` may begin.
  template <typename First, typename Second>
  static void AtOnce(int round, First first, Second second) {
    std::atomic<bool> go{false};
    std::thread other([&] {
      while (!go.load()) {
      }
      first();
    });
    go.store(true);
    std::atomic<int> spin{0};
    while (spin.fetch_add(1) < (round % 100) * 10) {
    }
    second();
    other.join();
  }

  const Settings settings_{.llp = GetParam()};
  Rnic rnic_{transport::ProcessNetwork(), settings_, 1};
};

INSTANTIATE_TEST_SUITE_P(Wires, EstablishRace, ::testing::Values(Llp::kTcp, Llp::kSctp),
                         [](const auto& info) { return info.param == Llp::kTcp ? "Tcp" : "Sctp"; });

TEST_P(EstablishRace, ARequestThatIsAnsweredAndLetGoAtOnceIsOneOfTheTwo) {
  for (int round = 0; round < kRounds; ++round) {
    Program client(rnic_), server(rnic_);
    const auto request = Request(client, server);
    ASSERT_NE(request, nullptr);
    AtOnce(round, [&] { request->Accept(server.qp.handle(), {.ird = 1, .ord = 1}); }, [&] { request->Close(); });
    EXPECT_NE(request->Accept(server.qp.handle(), {}), 0) << "once is enough";
  }
}

TEST_P(EstablishRace, AQueuePairThatIsDestroyedAsItConnectsIsGone) {
  for (int round = 0; round < kRounds; ++round) {
    std::weak_ptr<QueuePair> queue_pair;
    std::weak_ptr<CompletionQueue> completions;
    {
      Program client(rnic_), server(rnic_);
      const auto request = Request(client, server);
      ASSERT_NE(request, nullptr);
      auto doomed = std::make_unique<Program>(rnic_);
      queue_pair = doomed->qp.qp;
      completions = doomed->cq;
      AtOnce(round, [&] { request->Accept(doomed->qp.handle(), {.ird = 1, .ord = 1}); }, [&] { doomed->qp.qp->Destroy(); });
      request->Close();
      // As ~Program(), but for the queue pair, which is destroyed.
      doomed->qp.qp = rnic_.CreateQueuePair({.pd = doomed->pd, .send_cq = doomed->cq, .receive_cq = doomed->cq, .async = doomed->async}).value();
    }
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while ((!queue_pair.expired() || !completions.expired()) && std::chrono::steady_clock::now() < limit) Settle();
    ASSERT_TRUE(queue_pair.expired()) << "round " << round;
    ASSERT_TRUE(completions.expired()) << "round " << round;
  }
}

}  // namespace
}  // namespace weft::sim
