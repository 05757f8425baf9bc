#include "pmi/slurm/node_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi::slurm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> Hosts(const std::string& list) {
  const auto hosts = ExpandNodeList(list);
  return hosts ? hosts.value() : std::vector<std::string>{"error: " + hosts.error().message};
}

std::string ErrorOf(const std::string& list) {
  const auto hosts = ExpandNodeList(list);
  return hosts ? "no error" : hosts.error().message;
}

// What `scontrol show hostnames` of Slurm 22.05 makes of each list.
TEST(NodeList, IsExpandedAsSlurmDoes) {
  EXPECT_THAT(Hosts("node1"), ElementsAre("node1"));
  EXPECT_THAT(Hosts("node[1-2]"), ElementsAre("node1", "node2"));
  EXPECT_THAT(Hosts("a[1-3,07-09]-x[1,2],b"),
              ElementsAre("a1-x1", "a1-x2", "a2-x1", "a2-x2", "a3-x1", "a3-x2", "a07-x1", "a07-x2", "a08-x1", "a08-x2",
                          "a09-x1", "a09-x2", "b"));
  EXPECT_THAT(Hosts("a[1-2][3-4]"), ElementsAre("a13", "a14", "a23", "a24"));
  EXPECT_THAT(Hosts("a1,a1"), ElementsAre("a1", "a1"));
  EXPECT_THAT(Hosts("login.example.org,c-[5]"), ElementsAre("login.example.org", "c-5"));
}

TEST(NodeList, NumbersAreAsLongAsTheFirstOfTheirRange) {
  EXPECT_THAT(Hosts("a[08-10]"), ElementsAre("a08", "a09", "a10"));
  EXPECT_THAT(Hosts("a[8-010]"), ElementsAre("a8", "a9", "a10"));
  EXPECT_THAT(Hosts("a[098-101]"), ElementsAre("a098", "a099", "a100", "a101"));
  EXPECT_THAT(Hosts("a[8-11]"), ElementsAre("a8", "a9", "a10", "a11"));
  EXPECT_THAT(Hosts("a[001-2]"), ElementsAre("a001", "a002"));
  EXPECT_THAT(Hosts("a[0-0,00]"), ElementsAre("a0", "a00"));
}

TEST(NodeList, MayHaveTextBehindABracket) {
  EXPECT_THAT(Hosts("a[1-2].example"), ElementsAre("a1.example", "a2.example"));
}

TEST(NodeList, ErrorsQuoteWhatIsWrong) {
  EXPECT_THAT(ErrorOf("b,a[1-"), HasSubstr("in the list of hosts 'b,a[1-', 'a[1-' has a '[' that is not closed"));
  EXPECT_THAT(ErrorOf("a[3-1]"), HasSubstr("the range '3-1' ends before it begins"));
  for (const char* range : {"", "x", "1-2-3", "-1", "1-", "+1", " 1", "1x", "[1", "99999999999999999999"}) {
    EXPECT_THAT(ErrorOf(std::string("a[") + range + "]"), HasSubstr("'" + std::string(range) + "' is neither a number"))
        << range;
  }
  EXPECT_THAT(ErrorOf("a[1,]"), HasSubstr("'' is neither a number"));
  EXPECT_THAT(ErrorOf(""), HasSubstr("'' is not a host name"));
  EXPECT_THAT(ErrorOf("a,,b"), HasSubstr("'' is not a host name"));
  EXPECT_THAT(ErrorOf("a,"), HasSubstr("'' is not a host name"));
  EXPECT_THAT(ErrorOf("a b"), HasSubstr("'a b' is not a host name"));
  EXPECT_THAT(ErrorOf("a]"), HasSubstr("'a]' is not a host name"));
  EXPECT_THAT(ErrorOf("a[1]]"), HasSubstr("is not a host name"));
}

// They become words of a command line.
TEST(NodeList, NamesNoOptionAndNoShellWord) {
  EXPECT_THAT(ErrorOf("--export[1-2]"), HasSubstr("is not a host name"));
  EXPECT_THAT(ErrorOf("a;reboot"), HasSubstr("'a;reboot' is not a host name"));
  EXPECT_THAT(ErrorOf("a$(x)[1-2]"), HasSubstr("is not a host name"));
  EXPECT_THAT(ErrorOf(std::string(256, 'a')), HasSubstr("is not a host name"));
}

TEST(NodeList, IsBounded) {
  EXPECT_EQ(Hosts("a[1-65536]").size(), kMostNodes);
  EXPECT_EQ(Hosts("a[1-256]b[1-256]").size(), kMostNodes);
  EXPECT_EQ(Hosts("a[1-65535],b").size(), kMostNodes);
  for (const char* list : {"a[1-65537]", "a[0-999999999999999999]", "a[1-65536,1]", "a[1-256]b[1-257]", "a[1-65536],b",
                           "a[1-9999]b[1-9999]c[1-9999]d[1-9999]e[1-9999]"}) {
    EXPECT_THAT(ErrorOf(list), HasSubstr("there are more than 65536 hosts")) << list;
  }
  EXPECT_THAT(ErrorOf("[1-65536]" + std::string(1000000, 'a')), HasSubstr("is not a host name"));
}

}  // namespace
}  // namespace weft::pmi::slurm
