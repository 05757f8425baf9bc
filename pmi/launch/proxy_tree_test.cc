#include "pmi/launch/proxy_tree.h"

#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using Hosts = std::vector<GrowOrder::Host>;

Hosts Numbered(int count) {
  Hosts hosts;
  for (int i = 0; i < count; ++i) hosts.push_back({i, "h" + std::to_string(i)});
  return hosts;
}

// How many proxies one process has to start at most, and how many are between mpiexec and the farthest host.
struct Shape {
  size_t widest = 0, depth = 0;
};

Shape ShapeOf(const Hosts& hosts) {
  const auto shares = Shares(hosts, StartMeans().most_branches);
  Shape shape{shares.size(), hosts.empty() ? 0u : 1u};
  for (const Hosts& share : shares) {
    const Shape below = ShapeOf({share.begin() + 1, share.end()});
    shape.widest = std::max(shape.widest, below.widest);
    shape.depth = std::max(shape.depth, 1 + below.depth);
  }
  return shape;
}

TEST(ProxyTreeTest, SharesAreEvenAndKeepTheOrder) {
  for (const int count : {0, 1, 15, 16, 17, 64, 1000}) {
    const auto shares = Shares(Numbered(count), 16);
    EXPECT_EQ(shares.size(), std::min<size_t>(16, static_cast<size_t>(count)));
    Hosts all;
    for (const Hosts& share : shares) {
      EXPECT_FALSE(share.empty());
      EXPECT_LE(share.size(), shares.back().size() + 1);
      all.insert(all.end(), share.begin(), share.end());
    }
    EXPECT_EQ(all, Numbered(count));
  }
}

TEST(ProxyTreeTest, NobodyStartsMoreThanSixteenHoweverManyHostsThereAre) {
  const struct {
    int hosts;
    size_t depth;
  } cases[] = {{1, 1}, {16, 1}, {17, 2}, {64, 2}, {272, 2}, {273, 3}, {4000, 3}};
  for (const auto& [hosts, depth] : cases) {
    const Shape shape = ShapeOf(Numbered(hosts));
    EXPECT_LE(shape.widest, StartMeans().most_branches) << hosts;
    EXPECT_EQ(shape.depth, depth) << hosts;
  }
}

TEST(GrowOrderTest, IsReadAsItWasWritten) {
  GrowOrder order{Numbered(3), {RemoteShell::Program("/opt/rsh"), "eth1", {4000, 4010}, 3}};
  order.means.remote_shell.more_arguments = {"-p", "2222"};
  const std::string bytes = order.Serialize();
  EXPECT_EQ(GrowOrder::Parse(bytes), order);
  for (size_t length = 0; length < bytes.size(); ++length) EXPECT_FALSE(GrowOrder::Parse(bytes.substr(0, length))) << length;
  EXPECT_FALSE(GrowOrder::Parse(bytes + "x"));
  order.means.most_branches = 0;
  EXPECT_FALSE(GrowOrder::Parse(order.Serialize()));
  order.means.most_branches = 1;
  order.means.ports = {2, 1};
  EXPECT_FALSE(GrowOrder::Parse(order.Serialize()));
}

}  // namespace
}  // namespace weft::pmi
