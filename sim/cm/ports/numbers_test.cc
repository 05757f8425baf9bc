#include "sim/cm/ports/numbers.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <set>
#include <vector>

namespace weft::sim {
namespace {

// Ports as a kernel gives them: each once, unless one is asked for.
class Ports {
 public:
  PortNumbers::Listen listen() {
    return [this](const transport::SocketAddress& at) -> Result<std::shared_ptr<CmListener>, int> {
      if (left == 0) return EMFILE;
      --left;
      asked.push_back(at);
      transport::SocketAddress local = at;
      if (local.port() == 0) local.set_port(next_++);
      return std::shared_ptr<CmListener>(std::make_shared<Listener>(*this, local));
    };
  }
  std::vector<transport::SocketAddress> asked;
  int open = 0;
  int left = 100;

 private:
  struct Listener final : CmListener {
    Listener(Ports& its_ports, const transport::SocketAddress& its_local) : ports(its_ports), local(its_local) { ++ports.open; }
    transport::SocketAddress local_address() const override { return local; }
    void Close() override { --ports.open; }
    Ports& ports;
    const transport::SocketAddress local;
  };
  uint16_t next_ = 40000;
};

TEST(PortNumbers, ANumberNamesItsPortAndIsGivenOnce) {
  Ports ports;
  const Settings settings;
  PortNumbers numbers(settings, ports.listen());
  std::set<uint32_t> given;
  for (int i = 0; i < 256; ++i) {
    const auto number = numbers.Allocate();
    ASSERT_TRUE(number.ok());
    EXPECT_EQ(*number >> 8, 40000u);
    EXPECT_TRUE(numbers.IsTaken(*number));
    EXPECT_TRUE(given.insert(*number).second);
  }
  EXPECT_EQ(ports.open, 1);
  EXPECT_EQ(*numbers.Allocate() >> 8, 40001u) << "the first port has given out all of its numbers";
  EXPECT_EQ(ports.open, 2);
  numbers.Close();
  EXPECT_EQ(ports.open, 0);
}

TEST(PortNumbers, ANumberThatWasGivenBackRestsForAWhile) {
  Ports ports;
  const Settings settings;
  PortNumbers numbers(settings, ports.listen());
  const uint32_t first = *numbers.Allocate();
  numbers.Release(first);
  EXPECT_FALSE(numbers.IsTaken(first));
  EXPECT_TRUE(numbers.WasEverTaken(first));
  EXPECT_FALSE(numbers.WasEverTaken(first + 2)) << "no queue pair had this number";
  for (int i = 0; i < 255; ++i) EXPECT_NE(*numbers.Allocate(), first);
  EXPECT_EQ(*numbers.Allocate(), first);
}

// Where devices are named, a number is reached at each of their addresses and nowhere else.
TEST(PortNumbers, WhereDevicesAreNamedItListensAtTheirAddressesAtOnePort) {
  Ports ports;
  Settings settings;
  settings.devices = {"lo"};
  PortNumbers numbers(settings, ports.listen());
  const auto number = numbers.Allocate();
  ASSERT_TRUE(number.ok());
  ASSERT_FALSE(ports.asked.empty());
  for (const auto& address : ports.asked) EXPECT_FALSE(address.is_wildcard()) << address.ToString();
  EXPECT_EQ(ports.asked.front().port(), 0);
  for (size_t i = 1; i < ports.asked.size(); ++i) EXPECT_EQ(ports.asked[i].port(), *number >> 8);
}

TEST(PortNumbers, NoPortIsAnErrorAndWhatThereIsStays) {
  Ports ports;
  ports.left = 1;
  const Settings settings;
  PortNumbers numbers(settings, ports.listen());
  const uint32_t first = *numbers.Allocate();
  for (int i = 0; i < 255; ++i) EXPECT_TRUE(numbers.Allocate().ok());
  EXPECT_EQ(numbers.Allocate().error(), EMFILE);
  numbers.Release(first);
  EXPECT_EQ(*numbers.Allocate(), first);
}

}  // namespace
}  // namespace weft::sim
