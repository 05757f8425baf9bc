// Random work over DDP sessions of real SCTP, whose packets are lost, repeated and overtaken, against the model.
#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "base/buffer_pool.h"
#include "tests/stack/run_seeds.h"
#include "transport/sctp/testing/virtual_sctp.h"
#include "wires/sctp/handshake/wire.h"

namespace weft::sim {
namespace {

class SctpWorld final : public World {
 public:
  explicit SctpWorld(uint64_t seed) : sctp_(seed) {}

  VirtualNetwork& network() override { return sctp_.network(); }
  transport::Network& AddHost(const std::string& address) override {
    Host& host = hosts_[address];
    host.sctp = &sctp_.AddHost({address}, /*mtu=*/1500, static_cast<uint16_t>(9000 + hosts_.size()));
    host.network = &sctp_.host_network();
    return *host.network;
  }
  std::unique_ptr<llp::Wire> MakeWire(const std::string& address, const Settings& settings) override {
    settings_.push_back(settings);
    const Host& host = hosts_.at(address);
    return std::make_unique<sctp::Wire>(*host.network, pool_, settings_.back(), [sctp = host.sctp] { return sctp; });
  }
  bool SetLinks(Random& random) override {
    LinkFaults link;
    link.jitter = std::chrono::microseconds(random.Between(0, 3000));
    link.lose_datagram = random.Chance(0.7) ? 0.05 * static_cast<double>(random.Between(0, 100)) / 100 : 0;
    link.repeat_datagram = random.Chance(0.5) ? 0.05 : 0;
    network().SetDefaultLink(link);
    if (!random.Chance(0.3)) return false;
    network().RunAt(network().Now() + std::chrono::microseconds(random.Between(0, 200'000)), [this] {
      LinkFaults gone;
      gone.lose_datagram = 1;
      network().SetDefaultLink(gone);
    });
    return true;
  }

 private:
  struct Host {
    transport::sctp::Sctp* sctp = nullptr;
    transport::Network* network = nullptr;
  };
  BufferPool pool_;
  std::deque<Settings> settings_;
  std::map<std::string, Host> hosts_;
  transport::sctp::VirtualSctp sctp_;
};

class SctpRandomRun : public ::testing::TestWithParam<uint64_t> {};

TEST_P(SctpRandomRun, RandomWorkOverSessionsOfSctpDoesWhatTheModelSays) {
  RunSeeds(
      GetParam(), "//tests/stack/sctp:random_run_test", 4'000, [] { return nullptr; },
      [](uint64_t seed) { return std::make_unique<SctpWorld>(seed); });
}

INSTANTIATE_TEST_SUITE_P(Quarter, SctpRandomRun, ::testing::Range(uint64_t{0}, kSeedParts));

}  // namespace
}  // namespace weft::sim
