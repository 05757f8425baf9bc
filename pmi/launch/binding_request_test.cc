#include "pmi/launch/binding_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;
using Kind = BindingRequest::Kind;
using Group = BindingRequest::Group;

BindingRequest Parse(const std::string& bind_to, const std::string& map_by = {}) {
  const auto request = ParseBinding(bind_to, map_by);
  EXPECT_TRUE(request && request.value()) << bind_to;
  return request && request.value() ? *request.value() : BindingRequest{};
}

std::string ErrorOf(const std::string& bind_to, const std::string& map_by = {}) {
  const auto request = ParseBinding(bind_to, map_by);
  return request ? "parsed" : request.error().message;
}

TEST(BindingRequest, NamesAKindAndACount) {
  EXPECT_EQ(Parse("core").bind_to, (Group{Kind::kCore, 1}));
  EXPECT_EQ(Parse("core:2").bind_to, (Group{Kind::kCore, 2}));
  EXPECT_EQ(Parse("hwthread:65536").bind_to, (Group{Kind::kHardwareThread, 65536}));
  EXPECT_EQ(Parse("socket").bind_to.kind, Kind::kSocket);
  EXPECT_EQ(Parse("numa").bind_to.kind, Kind::kNuma);
  EXPECT_EQ(Parse("l3cache").bind_to.kind, Kind::kL3Cache);
}

TEST(BindingRequest, RanksAreMappedByWhatTheyAreBoundTo) {
  EXPECT_EQ(Parse("core:2").map_by, (Group{Kind::kCore, 2}));
  EXPECT_EQ(Parse("core", "socket").map_by, (Group{Kind::kSocket, 1}));
  EXPECT_EQ(Parse("core", "numa:2").map_by, (Group{Kind::kNuma, 2}));
}

TEST(BindingRequest, MayBeNone) {
  for (const char* none : {"", "none"}) EXPECT_EQ(ParseBinding(none, "core").value(), std::nullopt);
}

TEST(BindingRequest, MayListCpus) {
  EXPECT_THAT(Parse("user:0+2,1,3+4+5").user, ElementsAre(ElementsAre(0, 2), ElementsAre(1), ElementsAre(3, 4, 5)));
  for (const char* wrong : {"user:", "user:0,", "user:+1", "user:-1", "user:0-3", "user:a", "user:99999999"}) {
    EXPECT_THAT(ErrorOf(wrong), testing::HasSubstr("is not the number of a CPU")) << wrong;
  }
}

TEST(BindingRequest, ErrorsSayWhatCanBe) {
  EXPECT_THAT(ErrorOf("cores"),
              StartsWith("'cores' is not one of none, user:LIST, core, hwthread, socket, numa, machine, l1cache,"));
  EXPECT_THAT(ErrorOf("core", "none"), StartsWith("'none' is not one of core, hwthread,"));
  EXPECT_THAT(ErrorOf("none", "bad"), StartsWith("'bad' is not one of"));
  for (const char* wrong : {"core:", "core:0", "core:-1", "core:x", "core:2:2", "core:65537"}) {
    EXPECT_THAT(ErrorOf(wrong), testing::HasSubstr("not a number from 1 to 65536 after the colon")) << wrong;
  }
}

TEST(BindingRequestTest, HydrasOtherNamesMeanTheSame) {
  for (const auto& [name, same] : {std::pair{"rr", "hwthread"}, {"package:2", "socket:2"}, {"l2dcache", "l2cache"}, {"l3ucache", "l3cache"}}) {
    EXPECT_EQ(ParseBinding(name, name).value(), ParseBinding(same, same).value()) << name;
  }
  for (const char* device : {"pci:0", "gpu", "ib0", "eth0", "hfi:1"}) EXPECT_FALSE(ParseBinding(device, {})) << device;
}

}  // namespace
}  // namespace weft::pmi
