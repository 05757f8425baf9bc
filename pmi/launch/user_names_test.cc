#include "pmi/launch/user_names.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>

namespace weft::pmi {
namespace {

class UserNamesTest : public testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove_all(directory_); }
  bool IsThere() const { return std::filesystem::exists(directory_); }

  const std::string directory_ = testing::TempDir() + "/names." + std::to_string(getpid());
};

TEST_F(UserNamesTest, AreKnownToOtherLaunchers) {
  UserNames one(directory_), other(directory_);
  EXPECT_EQ(other.Lookup("service"), std::nullopt);
  EXPECT_TRUE(one.Publish("service", "port of one"));
  EXPECT_EQ(other.Lookup("service"), "port of one");
  EXPECT_EQ(one.Lookup("service"), "port of one");
  EXPECT_EQ(other.Lookup("servic"), std::nullopt);
  one.Unpublish("service");
  EXPECT_EQ(other.Lookup("service"), std::nullopt);
}

TEST_F(UserNamesTest, BelongToTheFirst) {
  UserNames one(directory_), other(directory_);
  EXPECT_TRUE(one.Publish("service", "port of one"));
  EXPECT_FALSE(other.Publish("service", "port of other"));
  other.Unpublish("service");
  EXPECT_EQ(other.Lookup("service"), "port of one");
}

TEST_F(UserNamesTest, GoWithTheirPublisherAndTheDirectoryWithTheLast) {
  auto one = std::make_unique<UserNames>(directory_);
  UserNames other(directory_);
  EXPECT_TRUE(one->Publish("a/b\n..", "port"));
  EXPECT_EQ(other.Lookup("a/b\n.."), "port");
  one.reset();
  EXPECT_EQ(other.Lookup("a/b\n.."), std::nullopt);
  EXPECT_FALSE(IsThere());
}

TEST_F(UserNamesTest, OfAPublisherThatWasKilledAreNone) {
  const pid_t child = fork();
  if (child == 0) {
    UserNames killed(directory_);
    _exit(killed.Publish("service", "stale") ? 0 : 1);  // no destructor
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  UserNames next(directory_);
  EXPECT_EQ(next.Lookup("service"), std::nullopt);
  EXPECT_TRUE(next.Publish("service", "new"));
  EXPECT_EQ(UserNames(directory_).Lookup("service"), "new");
}

TEST_F(UserNamesTest, AreNotSharedThroughADirectoryThatOthersMayWriteTo) {
  ASSERT_EQ(mkdir(directory_.c_str(), 0700), 0);
  UserNames names(directory_);
  ASSERT_TRUE(names.Publish("service", "port"));
  ASSERT_EQ(chmod(directory_.c_str(), 0777), 0);
  EXPECT_EQ(names.Lookup("service"), std::nullopt);
  EXPECT_FALSE(UserNames(directory_).Publish("other", "port"));
}

TEST_F(UserNamesTest, ThatAreTooLongForAFileAreNotShared) {
  UserNames names(directory_);
  EXPECT_TRUE(names.Publish(std::string(100, 'x'), "port"));
  EXPECT_FALSE(names.Publish(std::string(200, 'x'), "port"));
  EXPECT_FALSE(names.Publish("", "port"));
}

}  // namespace
}  // namespace weft::pmi
