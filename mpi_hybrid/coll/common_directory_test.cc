#include "mpi_hybrid/coll/common_directory.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

namespace weft::mpi {
namespace {

class CommonDirectory : public testing::Test {
 protected:
  CommonDirectory() {
    std::string name = testing::TempDir() + "/common_directory_XXXXXX";
    path_ = mkdtemp(name.data());
  }
  ~CommonDirectory() override { rmdir(path_.c_str()); }

  int Files() const {
    DIR* dir = opendir(path_.c_str());
    int files = -2;  // . and ..
    while (readdir(dir) != nullptr) ++files;
    closedir(dir);
    return files;
  }

  std::string path_;
};

TEST_F(CommonDirectory, AMarkIsSeenByWhoeverHasTheDirectoryAndGoneAfterwards) {
  {
    SeenDirectory one(path_), same(path_ + "/."), other(testing::TempDir());
    EXPECT_EQ(one.inode(), same.inode());
    EXPECT_EQ(one.device(), same.device());
    const uint64_t mark = one.LeaveMark();
    ASSERT_NE(mark, 0u);
    EXPECT_TRUE(same.HasMark(mark));
    EXPECT_TRUE(one.HasMark(mark));
    EXPECT_FALSE(other.HasMark(mark));
    EXPECT_FALSE(same.HasMark(mark + 1));
    EXPECT_FALSE(same.HasMark(0));
    EXPECT_EQ(Files(), 1);
    EXPECT_EQ(one.LeaveMark(), mark) << "one is enough";
    EXPECT_EQ(Files(), 1);
  }
  EXPECT_EQ(Files(), 0);
}

TEST_F(CommonDirectory, WhatIsNotThereHasNoMark) {
  SeenDirectory absent(path_ + "/absent"), none("");
  for (SeenDirectory* each : {&absent, &none}) {
    EXPECT_FALSE(each->exists());
    EXPECT_EQ(each->LeaveMark(), 0u);
    EXPECT_FALSE(each->HasMark(1));
  }
  EXPECT_FALSE(SeenDirectory("/proc/self/status").exists()) << "a file";
}

TEST_F(CommonDirectory, WhatOneSeesOfTheOtherJoinsBoth) {
  EXPECT_EQ(PartsOf(0, {}), std::vector<size_t>());
  EXPECT_EQ(PartsOf(3, std::vector<bool>(9)), (std::vector<size_t>{0, 1, 2}));
  // 2 may not write, and sees the file of 0; 3 sees that of 1.
  std::vector<bool> sees(16);
  sees[2 * 4 + 0] = sees[3 * 4 + 1] = true;
  EXPECT_EQ(PartsOf(4, sees), (std::vector<size_t>{0, 1, 0, 1}));
  sees[3 * 4 + 2] = true;  // a chain
  EXPECT_EQ(PartsOf(4, sees), (std::vector<size_t>{0, 0, 0, 0}));
}

}  // namespace
}  // namespace weft::mpi
