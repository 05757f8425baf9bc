#include <gtest/gtest.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <string>

namespace {

// The target sets WEFT_MPA_CRCC=on, a misspelt name.
TEST(VerbsSettings, MisspeltSettingLeavesNoDevicesAndIsNamedOnce) {
  testing::internal::CaptureStderr();
  int count = -1;
  errno = 0;
  EXPECT_EQ(ibv_get_device_list(&count), nullptr);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(count, 0);
  EXPECT_EQ(ibv_get_device_list(&count), nullptr);
  const std::string log = testing::internal::GetCapturedStderr();
  const size_t first = log.find("WEFT_MPA_CRCC");
  ASSERT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("WEFT_MPA_CRCC", log.find('\n', first)), std::string::npos) << log;
}

}  // namespace
