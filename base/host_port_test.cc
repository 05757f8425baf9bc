#include "base/host_port.h"

#include <gtest/gtest.h>

namespace weft {
namespace {

TEST(HostPortTest, PortStandsBehindTheLastColon) {
  const struct {
    const char *text, *host;
    uint16_t port;
  } cases[] = {{"node7:4711", "node7", 4711},
               {"192.0.2.7:1", "192.0.2.7", 1},
               {"[fd00::7]:65535", "fd00::7", 65535},
               {"[fe80::1%eth0]:80", "fe80::1%eth0", 80},
               {"fd00::7:80", "fd00::7", 80}};
  for (const auto& [text, host, port] : cases) {
    const auto parsed = ParseHostPort(text);
    ASSERT_TRUE(parsed.has_value()) << text;
    EXPECT_EQ(parsed->host, host);
    EXPECT_EQ(parsed->port, port) << text;
  }
}

TEST(HostPortTest, WhatHasNoHostOrNoPortIsNone) {
  for (const char* text : {"", ":", "nowhere", "node7:", ":80", "[]:80", "node7:0", "node7:65536", "node7:-1",
                           "node7:80 ", "node7:x", "node7: 80", "[fd00::7]", "node7:99999999999999999999"}) {
    EXPECT_FALSE(ParseHostPort(text).has_value()) << text;
  }
}

TEST(HostPortTest, NumberBehindAHostMayBeMissing) {
  const struct {
    const char *text, *host;
    std::optional<std::string_view> number;
  } cases[] = {{"node7", "node7", std::nullopt},
               {"node7:4", "node7", "4"},
               {"node7:", "node7", ""},
               {":4", "", "4"},
               {"fd00::7", "fd00::7", std::nullopt},
               {"[fd00::7]", "fd00::7", std::nullopt},
               {"[fd00::7]:4", "fd00::7", "4"},
               {"", "", std::nullopt}};
  for (const auto& [text, host, number] : cases) {
    const auto parts = SplitHost(text);
    ASSERT_TRUE(parts.has_value()) << text;
    EXPECT_EQ(parts->host, host) << text;
    EXPECT_EQ(parts->number, number) << text;
  }
  for (const char* text : {"[", "[fd00::7", "[fd00::7]4", "[]x"}) EXPECT_FALSE(SplitHost(text).has_value()) << text;
}

}  // namespace
}  // namespace weft
