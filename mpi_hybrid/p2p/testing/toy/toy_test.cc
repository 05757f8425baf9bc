// A wire that nothing outside this folder knows of carries the tests of the engine and those of every transport.

#include <gtest/gtest.h>

#include <memory>

#include "mpi_hybrid/p2p/testing/device_pair.h"
#include "mpi_hybrid/p2p/testing/engine_suite.h"
#include "mpi_hybrid/p2p/testing/toy/toy_network.h"
#include "mpi_hybrid/p2p/testing/transport_suite.h"

namespace weft::mpi::testing {
namespace {

NetworkFactory Toy(ToyNetwork::Carries carries) {
  return [carries](int size, unsigned seed) { return std::make_unique<ToyNetwork>(size, seed, carries); };
}

template <ToyNetwork::Carries kCarries>
struct ToyPair : DevicePair {
  explicit ToyPair(const EngineLimits& limits, unsigned seed = 1) : DevicePair(Toy(kCarries), limits, seed) {}
};

using Bytes = ToyPair<ToyNetwork::Carries::kBytes>;
using WholeFrames = ToyPair<ToyNetwork::Carries::kWholeFrames>;
INSTANTIATE_TYPED_TEST_SUITE_P(ToyBytes, MessageSuite, Bytes);
INSTANTIATE_TYPED_TEST_SUITE_P(ToyBytes, EngineSuite, Bytes);
INSTANTIATE_TYPED_TEST_SUITE_P(ToyWholeFrames, MessageSuite, WholeFrames);
INSTANTIATE_TYPED_TEST_SUITE_P(ToyWholeFrames, EngineSuite, WholeFrames);

INSTANTIATE_TEST_SUITE_P(ToyBytes, TransportSuite, ::testing::Values(Toy(ToyNetwork::Carries::kBytes)));
INSTANTIATE_TEST_SUITE_P(ToyWholeFrames, TransportSuite, ::testing::Values(Toy(ToyNetwork::Carries::kWholeFrames)));

// Even ranks have a wire of their own among them, as processes of one host will; all others use the second.
class TwoNetworks final : public Network {
 public:
  TwoNetworks(int size, unsigned seed)
      : even(size, seed, ToyNetwork::Carries::kWholeFrames,
             [](ProcessId a, ProcessId b) { return a % 2 == 0 && b % 2 == 0; }),
        all(size, seed, ToyNetwork::Carries::kBytes) {}
  std::unique_ptr<Transport> Make(Engine& engine, EventLoop& loop) override { return even.Make(engine, loop); }
  bool IsQuiet() override { return even.IsQuiet() && all.IsQuiet(); }

  ToyNetwork even, all;
};

class TwoWiresTest : public JobTest {
 protected:
  TwoWiresTest() : JobTest([](int size, unsigned seed) { return std::make_unique<TwoNetworks>(size, seed); }) {}
  TwoNetworks& networks() { return static_cast<TwoNetworks&>(*network_); }
};

TEST_F(TwoWiresTest, TheFirstThatReachesAProcessCarriesAllBetweenTheTwo) {
  constexpr int kRanks = 4;
  network_ = factory_(kRanks, 1);
  for (int rank = 0; rank < kRanks; ++rank) {
    peers_.push_back(std::make_unique<Peer>(*network_, rank, kRanks, EngineLimits()));
    at(rank).device.Add(networks().all.Make(at(rank).engine, at(rank).device.loop()));
    at(rank).Start();
  }
  ExpectTraffic(0, 2, 100'000);
  EXPECT_GT(networks().even.pieces_carried(), 0U);
  EXPECT_EQ(networks().all.pieces_carried(), 0U);
  const size_t carried = networks().even.pieces_carried();
  for (const auto& [a, b] : {std::pair{0, 1}, {1, 3}, {3, 2}}) ExpectTraffic(a, b, 300'000);
  EXPECT_GT(networks().all.pieces_carried(), 0U);
  EXPECT_EQ(networks().even.pieces_carried(), carried);
}

}  // namespace
}  // namespace weft::mpi::testing
