#include "pmi/launch/host_lookup.h"

#include <gtest/gtest.h>
#include <unistd.h>

namespace weft::pmi {
namespace {

TEST(HostLookupTest, KnowsThisHostWithoutAskingAnybody) {
  char own[256] = {};
  ASSERT_EQ(gethostname(own, sizeof(own) - 1), 0);
  const HostLookup lookup({"localhost", own, "127.0.0.1", "192.0.2.77"});
  ASSERT_TRUE(lookup.done());
  EXPECT_EQ(lookup.fd(), -1);
  for (const size_t i : {0u, 1u, 2u}) EXPECT_TRUE(lookup.facts()[i].is_this) << i;
  EXPECT_FALSE(lookup.facts()[3].is_this);
  EXPECT_EQ(lookup.facts()[2].address, "127.0.0.1");
}

TEST(HostLookupTest, AsksForNamesAndKnowsWhichIsWhich) {
  const auto facts = LookUpHosts({"nobody.invalid", "localhost.localdomain.invalid", "127.0.0.1", "ip6-localhost.invalid"});
  ASSERT_EQ(facts.size(), 4u);
  for (const size_t i : {0u, 1u, 3u}) {
    EXPECT_FALSE(facts[i].is_this) << i;
    EXPECT_EQ(facts[i].address, "") << i;
  }
  EXPECT_TRUE(facts[2].is_this);
}

TEST(HostLookupTest, ManyNamesTakeNoLongerThanOneThatNobodyKnows) {
  const std::vector<std::string> names(500, "nobody.invalid");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(LookUpHosts(names).size(), names.size());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, HostLookup::kLimit + std::chrono::seconds(2));
}

TEST(HostLookupTest, MayBeLeftInTheMiddle) {
  for (int i = 0; i < 20; ++i) HostLookup({"nobody.invalid"});
}

}  // namespace
}  // namespace weft::pmi
