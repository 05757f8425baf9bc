#include "cm/rsocket/defaults.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace weft::rsocket {
namespace {

class DefaultsTest : public testing::Test {
 protected:
  DefaultsTest() {
    std::string name = testing::TempDir() + "/rsocketXXXXXX";
    directory_ = mkdtemp(name.data());
  }
  void Write(const std::string& name, const std::string& text) { std::ofstream(directory_ + "/" + name) << text; }
  std::string directory_;
};

TEST_F(DefaultsTest, AreThoseOfTheManualWithoutFiles) {
  const Defaults read = Defaults::Read(directory_ + "/none");
  EXPECT_EQ(read.polling_us, 10u);
  EXPECT_EQ(read.receive_bytes, 131072u);
  EXPECT_EQ(read.send_queue, 384u);
}

TEST_F(DefaultsTest, ComeFromFilesOfOneNumber) {
  Write("polling_time", "250\n");
  Write("mem_default", "1000000\n");
  Write("iomap_size", "8");
  const Defaults read = Defaults::Read(directory_);
  EXPECT_EQ(read.polling_us, 250u);
  EXPECT_EQ(read.receive_bytes, 1000000u);
  EXPECT_EQ(read.map_entries, 8u);
  EXPECT_EQ(read.send_bytes, 131072u);
}

TEST_F(DefaultsTest, AreKeptInRangeAndNoiseIsIgnored) {
  Write("sqsize_default", "1");
  Write("rqsize_default", "-7");
  Write("wmem_default", "99999999999");
  Write("inline_default", "much");
  const Defaults read = Defaults::Read(directory_);
  EXPECT_EQ(read.send_queue, 16u);
  EXPECT_EQ(read.receive_queue, 16u);
  EXPECT_EQ(read.send_bytes, 1u << 28);
  EXPECT_EQ(read.inline_bytes, 64u);
}

}  // namespace
}  // namespace weft::rsocket
