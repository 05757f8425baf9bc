#include "preload/paths.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::preload {
namespace {

// "" when it is not ours.
std::string Canonical(const char* path, const char* base = nullptr) {
  char out[kMaxPath];
  if (!CanonicalIfOurs(base, path, out)) return "";
  EXPECT_TRUE(MayBeOurs(path) || (base != nullptr && MayBeOurs(base))) << path;
  return out;
}

TEST(Paths, OursAreThoseOfTheKernelsRdmaDevices) {
  for (const char* path :
       {"/sys/class/infiniband", "/sys/class/infiniband/weft_lo/ports/1/state", "/sys/class/infiniband_verbs/uverbs0/ibdev",
        "/sys/devices/virtual/infiniband/weft_lo", "/sys/class/misc/rdma_cm/abi_version", "/dev/infiniband/uverbs0",
        "/sys/class/net/eth0/device/infiniband", "/sys/class/net/eth0/device/infiniband_verbs/uverbs0"}) {
    EXPECT_EQ(Canonical(path), path);
  }
}

TEST(Paths, OthersAreNot) {
  for (const char* path :
       {"", "/", "/sys", "/sys/class", "/dev", "/dev/infiniband2", "/sys/class/infiniband_mad", "/sys/class/infiniban", "infiniband",
        "/home/me/infiniband", "/sys/class/net/infiniband", "/sys/class/net/eth0/infiniband", "/sys/class/net//device/infiniban",
        "/sys/class/misc/rdma_cm2", "/tmp/sys/class/infiniband"}) {
    EXPECT_EQ(Canonical(path), "") << path;
  }
}

TEST(Paths, SlashesAndDotsMakeNoDifference) {
  EXPECT_EQ(Canonical("//sys/./class///infiniband/."), "/sys/class/infiniband");
  EXPECT_EQ(Canonical("/sys/class/infiniband/"), "/sys/class/infiniband/") << "asks for a directory";
  EXPECT_EQ(Canonical("/dev/infiniband//uverbs0"), "/dev/infiniband/uverbs0");
}

TEST(Paths, DotDotStaysBecauseALinkMayBeInFrontOfIt) {
  EXPECT_EQ(Canonical("/sys/class/infiniband/weft_lo/../x"), "/sys/class/infiniband/weft_lo/../x");
}

TEST(Paths, RelativeOnesStartAtTheirBase) {
  EXPECT_EQ(Canonical("class/infiniband", "/sys"), "/sys/class/infiniband");
  EXPECT_EQ(Canonical("infiniband/uverbs0", "/dev"), "/dev/infiniband/uverbs0");
  EXPECT_EQ(Canonical("dev/infiniband", "/"), "/dev/infiniband");
  EXPECT_EQ(Canonical("infiniband", "/home"), "");
  EXPECT_EQ(Canonical("infiniband", "(unreachable)/sys/class"), "");
}

TEST(Paths, OneThatIsTooLongIsLeftToTheKernel) {
  const std::string path = "/sys/class/infiniband/" + std::string(kMaxPath, 'x');
  EXPECT_EQ(Canonical(path.c_str()), "");
  const std::string longest = "/sys/class/infiniband/" + std::string(kMaxPath - 40, 'x');
  EXPECT_EQ(Canonical(longest.c_str()), longest);
}

TEST(Paths, BelowRootIsWhatProgramsKnow) {
  EXPECT_STREQ(BelowRoot("/t/a", "/t/a/sys/class"), "/sys/class");
  EXPECT_STREQ(BelowRoot("/t/a", "/t/a"), "");
  EXPECT_EQ(BelowRoot("/t/a", "/t/ab"), nullptr);
  EXPECT_EQ(BelowRoot("", "/t"), nullptr);
}

}  // namespace
}  // namespace weft::preload
