#include "impi/run/host_agent.h"

#include <gtest/gtest.h>

namespace weft::impi {
namespace {

using transport::SocketAddress;
using Words = std::vector<std::string>;

TEST(ImpiAgentWords, ComeBackFromTheCommandLine) {
  for (const AgentWords& words : {AgentWords{1, {"192.0.2.1"}, *SocketAddress::Parse("192.0.2.9", 7000), {}, "", {}},
                                  AgentWords{65535, {"192.0.2.1", "fe80::1%eth0"}, *SocketAddress::Parse("2001:db8::1", 1), {5000, 6000}, "eth0", {"192.0.2.7", "2001:db8::7"}}}) {
    const Words line = words.ToCommandLine("/usr/bin/impirun");
    EXPECT_EQ(line[0], "/usr/bin/impirun");
    EXPECT_EQ(line[1], "--agent");
    const auto back = AgentWords::Parse({line.begin() + 2, line.end()});
    ASSERT_TRUE(back);
    EXPECT_EQ(back->ToCommandLine("/usr/bin/impirun"), line);
    EXPECT_EQ(back->client_addresses, words.client_addresses);
    EXPECT_EQ(back->server, words.server);
    EXPECT_EQ(back->addresses, words.addresses);
  }
}

TEST(ImpiAgentWords, OtherCommandLinesAreNone) {
  const Words good = {"1", "192.0.2.1", "192.0.2.9", "7000", "0:0", "-", "-"};
  ASSERT_TRUE(AgentWords::Parse(good));
  for (size_t at = 0; at < good.size(); ++at) {
    Words shorter = good;
    shorter.erase(shorter.begin() + static_cast<long>(at));
    EXPECT_FALSE(AgentWords::Parse(shorter)) << at;
  }
  for (const auto& [at, word] : std::initializer_list<std::pair<size_t, const char*>>{{0, "65536"}, {0, ""}, {2, "host"}, {3, "-1"}, {4, ""}, {4, "5"}, {4, "a:b"}}) {
    Words other = good;
    other[at] = word;
    EXPECT_FALSE(AgentWords::Parse(other)) << at << " " << word;
  }
}

}  // namespace
}  // namespace weft::impi
