#include "pmi/launch/placement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const std::string& hosts) {
  const auto parsed = ParseHosts(hosts);
  return parsed ? "parsed" : parsed.error().message;
}

TEST(Placement, FillsHostsInTurnAgainAndAgain) {
  const Placement placement = Place({{"a", 1}, {"b", 2}}, 5);
  EXPECT_THAT(placement.hosts, ElementsAre("a", "b"));
  EXPECT_THAT(placement.host_of_rank, ElementsAre(0, 1, 1, 0, 1));
  EXPECT_EQ(placement.mapping, "(vector,(0,1,1),(1,1,2))");
}

TEST(Placement, OneHostTakesAll) {
  const Placement placement = Place({{"localhost", 1}}, 3);
  EXPECT_THAT(placement.host_of_rank, ElementsAre(0, 0, 0));
  EXPECT_EQ(placement.mapping, "(vector,(0,1,1))") << "what hydra says for any number of ranks";
}

TEST(Placement, HostsWithAsManyRanksAreOneBlock) {
  EXPECT_EQ(Place({{"a", 4}, {"b", 4}, {"c", 4}}, 12).mapping, "(vector,(0,3,4))");
  EXPECT_EQ(Place({{"a", 4}, {"b", 4}, {"c", 2}}, 10).mapping, "(vector,(0,2,4),(2,1,2))");
}

TEST(Placement, AHostNamedTwiceIsOneHost) {
  const Placement placement = Place({{"a", 1}, {"b", 1}, {"a", 1}}, 3);
  EXPECT_THAT(placement.hosts, ElementsAre("a", "b"));
  EXPECT_THAT(placement.host_of_rank, ElementsAre(0, 1, 0));
  EXPECT_EQ(placement.mapping, "(vector,(0,2,1),(0,1,1))");
}

TEST(Placement, HostsWithoutRanksAreLeftOut) {
  const Placement placement = Place({{"a", 4}, {"b", 4}}, 3);
  EXPECT_THAT(placement.hosts, ElementsAre("a"));
  EXPECT_EQ(placement.mapping, "(vector,(0,1,3))");
}

TEST(Placement, AMappingThatNoValueHoldsIsLeftOut) {
  std::vector<HostSlots> hosts;
  for (int i = 0; i < 400; ++i) hosts.push_back({"h" + std::to_string(i), 1 + i % 2});
  EXPECT_EQ(Place(hosts, 600).mapping, "");
}

TEST(Placement, ReadsListsOfHosts) {
  EXPECT_THAT(ParseHosts("a,b:2,192.0.2.1:3").value(),
              ElementsAre(HostSlots{"a", 1}, HostSlots{"b", 2}, HostSlots{"192.0.2.1", 3}));
  EXPECT_THAT(ParseHosts("::1,[fe80::1]:4,[::2],me@x").value(),
              ElementsAre(HostSlots{"::1", 1}, HostSlots{"fe80::1", 4}, HostSlots{"::2", 1}, HostSlots{"me@x", 1}));
}

TEST(Placement, NamesTheHostThatIsWrong) {
  EXPECT_THAT(ErrorOf("a,b:x"), HasSubstr("'b:x' has 'x' for its number of ranks"));
  EXPECT_THAT(ErrorOf("a:0"), HasSubstr("'0'"));
  EXPECT_THAT(ErrorOf("a,,b"), HasSubstr("'' is not a host name"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("is not a host name"));
  EXPECT_THAT(ErrorOf("-oProxyCommand=x"), HasSubstr("is not a host name"));
  EXPECT_THAT(ErrorOf("a;b"), HasSubstr("'a;b' is not a host name"));
  EXPECT_THAT(ErrorOf("[::1"), HasSubstr("no closing bracket"));
  EXPECT_THAT(ErrorOf("[::1]4"), HasSubstr("[ADDRESS]:NUMBER"));
}

TEST(Placement, ReadsHostFiles) {
  const auto hosts = ParseHostFile("# a comment\n a:2  binding=x\n\nb # last\r\nc:3", "f");
  EXPECT_THAT(hosts.value(), ElementsAre(HostSlots{"a", 2}, HostSlots{"b", 1}, HostSlots{"c", 3}));
  EXPECT_THAT(ParseHostFile("a\nb:?\n", "f").error().message, HasSubstr("f, line 2: "));
  EXPECT_THAT(ParseHostFile("# nothing\n", "f").error().message, HasSubstr("f names no host"));
}

}  // namespace
}  // namespace weft::pmi
