#include "sim/port_monitor.h"

#include <gtest/gtest.h>

#include <memory>

namespace weft::sim {
namespace {

DeviceInfo Device(bool up, std::vector<uint8_t> last_bytes = {1}) {
  DeviceInfo info;
  info.name = "weft_eth0";
  info.up = up;
  for (const uint8_t last : last_bytes) {
    ibv_gid gid = {};
    gid.raw[15] = last;
    info.gids.push_back(gid);
  }
  return info;
}

using Events = std::vector<ibv_event_type>;

TEST(PortEvents, NothingNewIsNoEvent) { EXPECT_EQ(PortEvents(Device(true), Device(true)), Events{}); }

TEST(PortEvents, LinkThatComesOrGoes) {
  EXPECT_EQ(PortEvents(Device(false), Device(true)), Events{IBV_EVENT_PORT_ACTIVE});
  EXPECT_EQ(PortEvents(Device(true), Device(false)), Events{IBV_EVENT_PORT_ERR});
}

TEST(PortEvents, AddressesThatChange) {
  EXPECT_EQ(PortEvents(Device(true, {1}), Device(true, {1, 2})), Events{IBV_EVENT_GID_CHANGE});
  EXPECT_EQ(PortEvents(Device(true, {1, 2}), Device(true, {1})), Events{IBV_EVENT_GID_CHANGE});
  EXPECT_EQ(PortEvents(Device(true, {1}), Device(true, {2})), Events{IBV_EVENT_GID_CHANGE});
}

TEST(PortEvents, PortGoesBeforeItsAddresses) {
  EXPECT_EQ(PortEvents(Device(true, {1, 2}), Device(false, {1})), (Events{IBV_EVENT_PORT_ERR, IBV_EVENT_GID_CHANGE}));
}

// A network without descriptors, as in virtual time.
class Nowhere : public transport::Network {
 public:
  Result<std::unique_ptr<transport::ByteStream>, int> StartConnect(const transport::SocketAddress&,
                                                                   const transport::SocketAddress&) override {
    return ENETUNREACH;
  }
  Result<std::unique_ptr<transport::Listener>, int> Listen(const transport::SocketAddress&, int, bool, bool) override {
    return EADDRNOTAVAIL;
  }
  transport::WatchId Watch(transport::ByteStream&, transport::Interest, std::shared_ptr<transport::ReadyHandler>) override { return 0; }
  transport::WatchId Watch(transport::Listener&, std::shared_ptr<transport::ReadyHandler>) override { return 0; }
  void SetInterest(transport::WatchId, transport::Interest) override {}
  void Unwatch(transport::WatchId) override {}
  transport::Time Now() override { return {}; }
  transport::TimerId RunAt(transport::Time, std::function<void()>) override { return 0; }
  bool Cancel(transport::TimerId) override { return false; }
  void Post(std::function<void()>) override {}
};

TEST(PortMonitor, WithoutNewsOfInterfacesThereAreNoEventsAndNoHarm) {
  struct Observer : PortObserver {
    void OnPortChange(const DeviceInfo&, const Events&) override { ADD_FAILURE(); }
  };
  Nowhere network;
  auto observer = std::make_shared<Observer>();
  PortMonitor monitor(network);
  monitor.Observe("weft_lo", observer);
  monitor.Observe("weft_lo", observer);
}

}  // namespace
}  // namespace weft::sim
