#include "sim/device/port_monitor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

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

// A network without descriptors, as in virtual time; what is posted waits.
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
  void Post(std::function<void()> work) override { posted.push_back(std::move(work)); }

  std::vector<std::function<void()>> posted;
};

// One with descriptors.
class Somewhere : public Nowhere {
 public:
  transport::WatchId WatchDescriptor(int, std::shared_ptr<transport::ReadyHandler>) override { return 1; }
};

// A network namespace for this thread alone, with a loopback that is down, while it lives.
class OwnNamespace {
 public:
  OwnNamespace() : before_(open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC)) {
    EXPECT_EQ(unshare(geteuid() == 0 ? CLONE_NEWNET : CLONE_NEWNET | CLONE_NEWUSER), 0) << std::strerror(errno);
  }
  ~OwnNamespace() {
    setns(before_, CLONE_NEWNET);
    close(before_);
  }
  void SetLoopback(bool up) {
    const int fd = socket(AF_INET, SOCK_DGRAM, 0);
    ifreq request{};
    std::strcpy(request.ifr_name, "lo");
    ioctl(fd, SIOCGIFFLAGS, &request);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    EXPECT_EQ(ioctl(fd, SIOCSIFFLAGS, &request), 0) << std::strerror(errno);
    close(fd);
  }

 private:
  const int before_;
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

TEST(PortMonitor, AQuerySeesAChangeAtOnceAndObserversHearOfItAllTheSame) {
  struct Observer : PortObserver {
    void OnPortChange(const DeviceInfo& now, const Events& events) override {
      EXPECT_EQ(now.name, "weft_lo");
      heard.insert(heard.end(), events.begin(), events.end());
    }
    Events heard;
  };
  OwnNamespace space;
  space.SetLoopback(true);
  Somewhere network;
  auto observer = std::make_shared<Observer>();
  PortMonitor monitor(network);
  monitor.Observe("weft_lo", observer);
  ASSERT_TRUE(monitor.Current("weft_lo").has_value());
  EXPECT_TRUE(monitor.Current("weft_lo")->up);
  EXPECT_FALSE(monitor.Current("weft_none").has_value());

  space.SetLoopback(false);
  EXPECT_FALSE(monitor.Current("weft_lo")->up);
  EXPECT_EQ(observer->heard, Events{}) << "before the network's thread had its turn";
  for (const auto& work : std::exchange(network.posted, {})) work();
  ASSERT_FALSE(observer->heard.empty());
  EXPECT_EQ(observer->heard[0], IBV_EVENT_PORT_ERR);

  observer->heard.clear();
  space.SetLoopback(true);
  EXPECT_TRUE(monitor.Current("weft_lo")->up);
  for (const auto& work : network.posted) work();
  ASSERT_FALSE(observer->heard.empty());
  EXPECT_EQ(observer->heard[0], IBV_EVENT_PORT_ACTIVE);
}

TEST(PortMonitor, TheChildOfAForkQueriesWithoutItsParentsNews) {
  OwnNamespace space;
  space.SetLoopback(true);
  Somewhere network;
  PortMonitor monitor(network);
  monitor.Observe("weft_lo", {});
  ASSERT_TRUE(monitor.Current("weft_lo")->up);
  space.SetLoopback(false);
  const pid_t child = fork();
  if (child == 0) _exit(monitor.Current("weft_lo")->up ? 1 : 0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0) << "the child sees that the interface is down";
  EXPECT_FALSE(monitor.Current("weft_lo")->up) << "the child took the news away";
}

}  // namespace
}  // namespace weft::sim
