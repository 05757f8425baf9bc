#ifndef MPI_HYBRID_P2P_TESTING_TRANSPORT_SUITE_H_
#define MPI_HYBRID_P2P_TESTING_TRANSPORT_SUITE_H_

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "mpi_hybrid/p2p/testing/network.h"

namespace weft::mpi::testing {

// A job on one network, whose processes all live in this process and are polled in turn.
class JobTest : public ::testing::Test {
 protected:
  explicit JobTest(NetworkFactory factory) : factory_(std::move(factory)) {}

  // Makes a new job.
  void Make(int size, const EngineLimits& limits = {}) {
    peers_.clear();
    network_ = factory_(size, ++seed_);
    for (int rank = 0; rank < size; ++rank) peers_.push_back(std::make_unique<Peer>(*network_, rank, size, limits));
    for (const auto& peer : peers_) peer->Start();
  }
  Peer& at(int rank) { return *peers_[static_cast<size_t>(rank)]; }
  // Polls every process that lives and is not in `still_`. Returns whether anything moved.
  bool PollOnce() {
    bool moved = false;
    for (size_t rank = 0; rank < peers_.size(); ++rank) {
      if (peers_[rank] != nullptr && !still_.contains(static_cast<int>(rank))) moved |= peers_[rank]->device.Poll();
    }
    return moved;
  }
  // Polls until `done`, for at most 20 s. False: it timed out.
  template <typename Done>
  bool PollUntil(Done done) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!done()) {
      if (!PollOnce() && network_->IsQuiet()) std::this_thread::yield();
      if (std::chrono::steady_clock::now() > end) return false;
    }
    return true;
  }
  // Sends a message of `length` bytes in each direction.
  void ExpectTraffic(int a, int b, size_t length = 1000);

  const NetworkFactory factory_;
  unsigned seed_ = 0;
  std::unique_ptr<Network> network_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::set<int> still_;  // processes that compute: they are not polled
};

// Tests what every wire must do (device/transport.h). To be instantiated for each:
//
//   INSTANTIATE_TEST_SUITE_P(Mine, TransportSuite, ::testing::Values(NetworkFactory(...)));
class TransportSuite : public JobTest, public ::testing::WithParamInterface<NetworkFactory> {
 protected:
  TransportSuite() : JobTest(GetParam()) {}

  // Sends from 0 to `to`, which computes, until the wire and the window are full. The messages are `filling`.
  std::vector<Request*> Fill(int to, const std::vector<uint8_t>& filling);
  // For a frame that was written at once. `rest` null: all of it was written. Else the rest is sent.
  bool TookAll(Request* rest);
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_TRANSPORT_SUITE_H_
