#include "mpi_hybrid/dynamic/port_name.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "base/version.h"

namespace weft::mpi {
namespace {

PortName Example() {
  return {.owner = {.job = {{1, 2, 3}}, .rank = 12},
          .number = 7,
          .secret = *JobSecret::FromHex("00112233445566778899aabbccddeeff"),
          .key = "weft-p2p",
          .card = "[fe80::1]:4000,10.0.0.1:4000"};
}

TEST(PortNameTest, WhatIsWrittenIsRead) {
  const auto read = PortName::Parse(Example().ToString());
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->owner, Example().owner);
  EXPECT_EQ(read->number, 7);
  EXPECT_EQ(read->secret, Example().secret);
  EXPECT_EQ(read->key, "weft-p2p");
  EXPECT_EQ(read->card, Example().card);
}

TEST(PortNameTest, OfTooManyAddressesTheFirstAreKept) {
  PortName name = Example();
  for (int i = 0; i < 20; ++i) name.card += ",192.168.100." + std::to_string(100 + i) + ":40000";
  const std::string text = name.ToString();
  EXPECT_LE(text.size(), PortName::kLongest);
  const auto read = PortName::Parse(text);
  ASSERT_TRUE(read.has_value());
  EXPECT_TRUE(name.card.starts_with(read->card + ","));
  EXPECT_TRUE(read->card.starts_with(Example().card));
}

TEST(PortNameTest, EveryPartOfOneIsNone) {
  const std::string text = Example().ToString();
  for (size_t length = 0; length < text.find('=') + 2; ++length) EXPECT_FALSE(PortName::Parse(text.substr(0, length))) << length;
}

TEST(PortNameTest, OtherTextsAreNone) {
  const std::string text = Example().ToString();
  const size_t job = text.find(':', 5) + 1;
  for (const std::string& wrong :
       {std::string(), std::string("tag#0$description#host$port#3"), std::string(300, 'x'), " " + text, text + "\n", "x" + text,
        "weft:" + text, std::string("::::::="), text.substr(0, job) + "zz" + text.substr(job + 2)})
    EXPECT_FALSE(PortName::Parse(wrong)) << wrong;
  EXPECT_EQ(PortName::WhyRefused("tag#0$port"), "'tag#0$port' is not the name of a port");
  std::string negative = text;
  negative.replace(negative.find(":12:"), 4, ":-1:");
  EXPECT_FALSE(PortName::Parse(negative));
}

TEST(PortNameTest, ThatOfAnotherVersionIsRefusedWithBothVersions) {
  const std::string own(Version()), text = Example().ToString(), rest = text.substr(("weft:" + own + ":").size());
  const std::string ends = ", and this process has Weft " + own + "; processes that connect need the same version";
  for (const auto& [other, why] : {std::pair{"weft:1.2.3:" + rest, "the port is of Weft 1.2.3" + ends}, std::pair{"weft:" + rest, "the port is of an older Weft" + ends}}) {
    EXPECT_FALSE(PortName::Parse(other)) << other;
    EXPECT_EQ(PortName::WhyRefused(other), why);
  }
}

}  // namespace
}  // namespace weft::mpi
