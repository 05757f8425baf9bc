#include "preload/home.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace weft::preload {
namespace {

using std::chrono::milliseconds;

// A directory like /dev/shm.
class HomeTest : public testing::Test {
 protected:
  HomeTest()
      : place_(testing::TempDir() + "/home" + std::to_string(getpid())),
        name_(place_ + "/weft-" + std::to_string(geteuid())) {
    std::filesystem::remove_all(place_);
    mkdir(place_.c_str(), 0700);
    chmod(place_.c_str(), 01777);
  }
  ~HomeTest() override { std::filesystem::remove_all(place_); }
  // As another user's: not to be trusted.
  void TakeTheName() {
    mkdir(name_.c_str(), 0700);
    chmod(name_.c_str(), 0777);
  }

  const std::string place_, name_;
};

TEST_F(HomeTest, IsNamedByTheUserAndFoundAgain) {
  const auto home = FindHome(place_);
  ASSERT_TRUE(home.ok()) << home.error().reason;
  EXPECT_EQ(*home, name_);
  EXPECT_EQ(*FindHome(place_), name_);
}

TEST_F(HomeTest, WhereTheNameIsTakenAnotherIsMadeAndFoundAgain) {
  TakeTheName();
  const auto home = FindHome(place_);
  ASSERT_TRUE(home.ok()) << home.error().reason;
  EXPECT_TRUE(home->starts_with(name_ + "."));
  EXPECT_EQ(home->size(), name_.size() + 7);
  EXPECT_EQ(*FindHome(place_), *home);
  struct stat now;
  ASSERT_EQ(stat(home->c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777, 0755u) << "who gives up privileges later still reads it";
}

TEST_F(HomeTest, OthersDirectoriesOfSuchANameAreNotUsed) {
  TakeTheName();
  const std::string bait = name_ + ".AAAAAA";
  mkdir(bait.c_str(), 0700);
  chmod(bait.c_str(), 0777);
  ASSERT_EQ(symlink("/", (name_ + ".BBBBBB").c_str()), 0);
  const auto home = FindHome(place_);
  ASSERT_TRUE(home.ok()) << home.error().reason;
  EXPECT_NE(*home, bait);
  EXPECT_NE(*home, name_ + ".BBBBBB");
}

TEST_F(HomeTest, ALinkOrAFileIsNotUsed) {
  ASSERT_EQ(symlink("/", name_.c_str()), 0);
  EXPECT_NE(*FindHome(place_), name_);
  unlink(name_.c_str());
  std::ofstream(name_) << "x";
  EXPECT_NE(*FindHome(place_), name_);
}

TEST_F(HomeTest, NotWhereOthersMayReplaceIt) {
  chmod(place_.c_str(), 0777);
  EXPECT_FALSE(FindHome(place_).ok());
  EXPECT_FALSE(FindHome(place_ + "/nowhere").ok());
}

// A directory that everybody may read everybody may lock.
TEST_F(HomeTest, AStrangersLockOfTheDirectoryHoldsNobodyUp) {
  const std::string home = *FindHome(place_);
  const int stranger = open(home.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_EQ(flock(stranger, LOCK_EX), 0);
  std::string error;
  EXPECT_TRUE(LockHome(home, milliseconds(0), &error)) << error;
  struct stat now;
  ASSERT_EQ(stat((home + "/" + kLockName).c_str(), &now), 0);
  EXPECT_EQ(now.st_mode & 0777, 0600u) << "nobody else can open it";
  close(stranger);
}

TEST_F(HomeTest, TheUsersOwnLockIsWaitedForSoLongAndThenNamed) {
  const std::string home = *FindHome(place_);
  std::string error;
  ASSERT_TRUE(LockHome(home, milliseconds(0), &error)) << error;
  EXPECT_FALSE(LockHome(home, milliseconds(30), &error));
  EXPECT_NE(error.find(home + "/lock"), std::string::npos) << error;
}

TEST_F(HomeTest, ALockThatOthersCanOpenIsNone) {
  const std::string home = *FindHome(place_);
  std::ofstream(home + "/" + kLockName) << "";
  chmod((home + "/" + kLockName).c_str(), 0644);
  std::string error;
  EXPECT_FALSE(LockHome(home, milliseconds(0), &error));
  EXPECT_NE(error.find("remove it"), std::string::npos) << error;
}

}  // namespace
}  // namespace weft::preload
