#ifndef MPI_HYBRID_P2P_TESTING_DEVICE_PAIR_H_
#define MPI_HYBRID_P2P_TESTING_DEVICE_PAIR_H_

#include <memory>
#include <random>

#include "mpi_hybrid/p2p/testing/network.h"

namespace weft::mpi::testing {

// The job of two processes for MessageSuite (message_suite.h), on a wire. The processes have devices, and connect when
// they first send.
class DevicePair {
 public:
  DevicePair(const NetworkFactory& factory, const EngineLimits& limits, unsigned seed)
      : random(seed), network_(factory(2, seed)), peers_{{*network_, 0, 2, limits}, {*network_, 1, 2, limits}} {
    for (Peer& peer : peers_) peer.Start();
  }

  void Step(size_t /*most*/) { peers_[random() % 2].device.Poll(); }
  void Settle(size_t /*most*/ = 0) {
    while (peers_[0].device.Poll() | peers_[1].device.Poll() || !network_->IsQuiet() ||
           peers_[0].device.Poll() | peers_[1].device.Poll()) {
    }
  }

  std::mt19937 random;

 private:
  std::unique_ptr<Network> network_;
  Peer peers_[2];

 public:
  Process &a = peers_[0], &b = peers_[1];
};

}  // namespace weft::mpi::testing

#endif  // MPI_HYBRID_P2P_TESTING_DEVICE_PAIR_H_
