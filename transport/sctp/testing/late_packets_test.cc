// Transfers while packets wait because the process that they are for has no processor: all that was sent arrives.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "sim/net/random.h"
#include "transport/sctp/testing/recorder.h"
#include "transport/sctp/testing/virtual_sctp.h"

namespace weft::transport::sctp {
namespace {

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr uint16_t kPort = 5043, kUdpPort = 9899;

// Two hosts with two links of `bytes_per_second` each and a queue in front of them, as switches have it. Now and then one of the hosts takes
// nothing in for a while.
class LatePackets : public testing::TestWithParam<std::tuple<Multipath, uint64_t>> {
 protected:
  LatePackets() : seed_(std::get<1>(GetParam())), random_(seed_ * 7919 + 13), world_(seed_) {
    client_ = &world_.AddHost({"10.1.0.1", "10.2.0.1"}, mtu_);
    server_ = &world_.AddHost({"10.1.0.2", "10.2.0.2"}, mtu_);
    world_.network().SetDatagramChange([this](std::vector<uint8_t>& bytes) { length_ = bytes.size(); });
    world_.network().SetDefaultLink([this](const SocketAddress& from, const SocketAddress& to) { return Link(from, to); });
  }
  ~LatePackets() override { world_.network().SetDatagramChange(nullptr); }

  Settings Both(const char* last) const {
    return {.local_addresses = {*SocketAddress::Parse(std::string("10.1.0.") + last, 0), *SocketAddress::Parse(std::string("10.2.0.") + last, 0)},
            .multipath = std::get<0>(GetParam())};
  }

  // One packet of length_.
  sim::LinkFaults Link(const SocketAddress& from, const SocketAddress& to) {
    const Time now = world_.network().Now();
    Time& free = free_[from.host() + to.host()];
    free = std::max(free, now);
    if (free - now > longest_queue_) return {.lose_datagram = 1};
    free += nanoseconds(static_cast<int64_t>(static_cast<double>(length_) / bytes_per_second_ * 1e9));
    return {.delay = std::max(free, absent_until_[to.host().back() - '1']) - now + microseconds(20)};
  }

  void BeAbsent() {
    if (over_) return;
    Network& network = world_.network();
    absent_until_[random_.Between(0, 1)] = network.Now() + microseconds(random_.Between(1000, 1u << random_.Between(11, 20)));
    network.RunAt(network.Now() + microseconds(random_.Between(1000, 300'000)), [this] { BeAbsent(); });
  }

  const uint64_t seed_;
  sim::Random random_;
  const uint32_t mtu_ = random_.Chance(0.5) ? 9000 : 1500;
  const double bytes_per_second_ = 1e6 * static_cast<double>(random_.Between(2, 30));
  const Duration longest_queue_ = microseconds(random_.Between(2000, 20'000));
  size_t length_ = 0;
  std::map<std::string, Time> free_;  // when a link has sent what waits for it
  Time absent_until_[2] = {};         // of a host
  bool over_ = false;
  VirtualSctp world_;
  Sctp* client_ = nullptr;
  Sctp* server_ = nullptr;
};

TEST_P(LatePackets, AreNothingButTime) {
  auto listener = server_->Listen(*SocketAddress::Parse("0.0.0.0", kPort), 16, Both("2"));
  ASSERT_TRUE(listener.ok()) << strerror(listener.error());
  auto acceptor = Acceptor::Of(std::move(*listener));
  acceptor->then = [](Recorder& peer) { peer.keep = false; };
  const Peer peer{.addresses = {*SocketAddress::Parse("10.1.0.2", kPort)}, .udp_port = kUdpPort};
  auto association = client_->Connect(peer, 0, Both("1"));
  ASSERT_TRUE(association.ok()) << strerror(association.error());
  auto client = Recorder::Of(std::move(*association));
  BeAbsent();
  // What is sent last has nothing behind it that would have it sent again.
  uint64_t bytes = 0;
  for (int round = 0; round < 30; ++round) {
    for (int i = 0; i < 16; ++i) client->Queue(0, 0, std::vector<uint8_t>(65536));
    bytes += 16 * 65536;
    const auto all_came = [&] { return !acceptor->accepted.empty() && acceptor->accepted[0]->bytes_received == bytes; };
    ASSERT_TRUE(world_.network().RunUntil(all_came, seconds(100))) << "seed " << seed_ << ", round " << round;
  }
  EXPECT_FALSE(client->over()) << strerror(client->error);
  over_ = true;
}

INSTANTIATE_TEST_SUITE_P(Modes, LatePackets,
                         testing::Combine(testing::Values(Multipath::kFailover, Multipath::kConcurrent, Multipath::kConcurrentPotentiallyFailed),
                                          testing::Range<uint64_t>(1, 73)));

}  // namespace
}  // namespace weft::transport::sctp
