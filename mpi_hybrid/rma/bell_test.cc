#include "mpi_hybrid/rma/bell.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft::mpi::rma {
namespace {

// With our own bell's, which is made on first use and stays.
int CountDescriptors() {
  EXPECT_GE(OwnBell().fd, 0);
  int count = 0;
  DIR* directory = opendir("/proc/self/fd");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

// The pipe that a process watches, which for the one that rings could be anywhere in /proc.
class Watched {
 public:
  Watched() {
    EXPECT_EQ(pipe2(ends_, O_CLOEXEC | O_NONBLOCK), 0);
    struct stat status;
    EXPECT_EQ(fstat(ends_[0], &status), 0);
    name_ = {getpid(), ends_[1], status.st_ino};
  }
  ~Watched() {
    close(ends_[0]);
    close(ends_[1]);
  }
  const BellName& name() const { return name_; }
  bool Heard() {
    char byte;
    return read(ends_[0], &byte, 1) == 1;
  }

 private:
  int ends_[2];
  BellName name_;
};

TEST(BellTest, WindowsShareOneDescriptorWhichIsClosedWithTheLastOfThem) {
  Watched watched;
  const int before = CountDescriptors();
  auto first = Bell::Of(watched.name()), second = Bell::Of(watched.name());
  EXPECT_EQ(CountDescriptors(), before);
  EXPECT_FALSE(watched.Heard());
  first->Ring();
  EXPECT_TRUE(watched.Heard());
  second->Ring();
  EXPECT_TRUE(watched.Heard());
  EXPECT_EQ(CountDescriptors(), before + 1);
  first.reset();
  second->Ring();
  EXPECT_TRUE(watched.Heard());
  second.reset();
  EXPECT_EQ(CountDescriptors(), before);
  Bell::Of(watched.name())->Ring();
  EXPECT_TRUE(watched.Heard());
  EXPECT_EQ(CountDescriptors(), before);
}

TEST(BellTest, OursRingsWithoutAnother) {
  auto bell = Bell::Of(OwnBell());
  const int before = CountDescriptors();
  bell->Ring();
  EXPECT_EQ(CountDescriptors(), before);
  char byte;
  EXPECT_EQ(read(OwnBellDescriptor(), &byte, 1), 1);
}

TEST(BellTest, WhatHasTheNumberNowIsNotRung) {
  Watched other;
  BellName gone = other.name();
  ++gone.inode;
  const int before = CountDescriptors();
  auto bell = Bell::Of(gone);
  bell->Ring();
  EXPECT_FALSE(other.Heard());
  EXPECT_EQ(CountDescriptors(), before);
  Bell::Of({})->Ring();  // of a process that has none
}

}  // namespace
}  // namespace weft::mpi::rma
