#include "pmi/launch/output_files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace weft::pmi {
namespace {

using ::testing::HasSubstr;
constexpr auto kOutput = OutputFiles::kOutput;
constexpr auto kErrorOutput = OutputFiles::kErrorOutput;

class OutputFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = ::testing::TempDir() + "/filesXXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  static std::string Content(const std::string& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static size_t OpenDescriptors() {
    const std::filesystem::directory_iterator entries("/proc/self/fd");
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

 private:
  std::string directory_;
};

TEST_F(OutputFilesTest, ReplacesWhatAnEarlierRunLeft) {
  for (const char* name : {"a", "b"}) std::ofstream(Path(name)) << "old\nand longer\n";
  OutputFiles files(false);
  EXPECT_EQ(files.Add(Path("a"), kOutput, 0, "new\n"), "");
  EXPECT_EQ(Content(Path("a")), "new\n");
  EXPECT_EQ(Content(Path("b")), "old\nand longer\n");
  EXPECT_EQ(files.Finish(Path("b"), kOutput, 0), "");
  EXPECT_EQ(Content(Path("b")), "") << "its rank wrote nothing";
}

TEST_F(OutputFilesTest, ARankThatWritesNothingHasNoFile) {
  OutputFiles files(false);
  EXPECT_EQ(files.Finish(Path("a"), kOutput, 0), "");
  EXPECT_FALSE(std::filesystem::exists(Path("a")));
}

TEST_F(OutputFilesTest, LinesOfRanksThatShareAFileDoNotMix) {
  OutputFiles files(true);
  for (const char* part : {"x", "y", "z\n"}) {
    EXPECT_EQ(files.Add(Path("a"), kOutput, 0, part), "");
    EXPECT_EQ(files.Add(Path("a"), kErrorOutput, 0, part), "");
    EXPECT_EQ(files.Add(Path("a"), kOutput, {1, 2}, part), "");
  }
  EXPECT_EQ(Content(Path("a")), "[0] xyz\n[0] xyz\n[job 2 rank 1] xyz\n");
  EXPECT_EQ(files.Add(Path("a"), kOutput, 0, "rest"), "");
  EXPECT_EQ(files.Finish(Path("a"), kOutput, 0), "");
  EXPECT_EQ(files.Add(Path("a"), kErrorOutput, 1, "more\n"), "") << "after another rank's end";
  EXPECT_EQ(Content(Path("a")), "[0] xyz\n[0] xyz\n[job 2 rank 1] xyz\n[0] rest[1] more\n");
}

TEST_F(OutputFilesTest, AThousandFilesNeedFewDescriptors) {
  OutputFiles files(false, 4);
  const size_t before = OpenDescriptors();
  for (int round = 0; round < 3; ++round) {
    for (int rank = 0; rank < 1000; ++rank) {
      ASSERT_EQ(files.Add(Path(std::to_string(rank)), kOutput, rank, "line " + std::to_string(round) + "\n"), "");
    }
    EXPECT_EQ(OpenDescriptors(), before + 4);
  }
  for (int rank = 0; rank < 1000; ++rank) {
    ASSERT_EQ(files.Finish(Path(std::to_string(rank)), kOutput, rank), "");
    ASSERT_EQ(Content(Path(std::to_string(rank))), "line 0\nline 1\nline 2\n");
  }
  EXPECT_EQ(OpenDescriptors(), before);
}

TEST_F(OutputFilesTest, WhereDescriptorsAreShortItGetsByWithThoseThatItHas) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = dup(STDIN_FILENO);
  close(next);
  rlimit low = limit;
  low.rlim_cur = static_cast<rlim_t>(next) + 2;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  {
    OutputFiles files(false);
    for (int rank = 0; rank < 20; ++rank) EXPECT_EQ(files.Add(Path(std::to_string(rank)), kOutput, rank, "a\n"), "");
  }
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  for (int rank = 0; rank < 20; ++rank) EXPECT_EQ(Content(Path(std::to_string(rank))), "a\n");
}

TEST_F(OutputFilesTest, WhatCannotBeWrittenIsNamedOnce) {
  OutputFiles files(false);
  EXPECT_EQ(files.Add("/dev/full", kOutput, 0, "a\n"),
            "cannot write the ranks' output to /dev/full: No space left on device");
  EXPECT_EQ(files.Add("/dev/full", kOutput, 0, "a\n"), "");
  EXPECT_EQ(files.Finish("/dev/full", kOutput, 0), "");
  EXPECT_EQ(files.Add(Path("no/such"), kOutput, 0, "a"),
            "cannot write the ranks' output to " + Path("no/such") + ": No such file or directory");
  EXPECT_THAT(files.Add(Path(""), kOutput, 0, "a"), HasSubstr("Is a directory"));
  ASSERT_EQ(mkfifo(Path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(files.Add(Path("pipe"), kOutput, 0, "a"),
            "cannot write the ranks' output to " + Path("pipe") + ": neither a file nor a device");
  EXPECT_EQ(files.Add(Path("other"), kOutput, 0, "a\n"), "") << "others are not touched";
}

TEST_F(OutputFilesTest, DevicesTakeOutputToo) {
  OutputFiles files(false);
  EXPECT_EQ(files.Add("/dev/null", kErrorOutput, 0, std::string(100000, 'x') + "\n"), "");
  EXPECT_EQ(files.Finish("/dev/null", kErrorOutput, 0), "");
}

}  // namespace
}  // namespace weft::pmi
