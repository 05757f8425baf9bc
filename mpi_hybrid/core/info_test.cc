#include "mpi_hybrid/core/info.h"

#include <gtest/gtest.h>

namespace weft::mpi {
namespace {

TEST(InfoTest, KeysStayInTheOrderInWhichTheyWereFirstSet) {
  Info& info = MakeInfo();
  info.Set("b", "1");
  info.Set("a", "2");
  info.Set("b", "3");
  ASSERT_EQ(info.entries.size(), 2u);
  EXPECT_EQ(info.entries[0].first, "b");
  EXPECT_EQ(info.Get("b"), "3");
  EXPECT_TRUE(info.Delete("b"));
  EXPECT_FALSE(info.Delete("b"));
  EXPECT_EQ(info.Get("b"), std::nullopt);
  info.Release();
}

TEST(InfoTest, HandleEndsWithItsLastReference) {
  Info& info = MakeInfo();
  const MPI_Info handle = info.handle;
  EXPECT_EQ(Info::Find(handle), &info);
  info.Release();
  EXPECT_EQ(Info::Find(handle), nullptr);
  EXPECT_EQ(Info::Find(MPI_INFO_NULL), nullptr);
  EXPECT_EQ(Info::Find(MPI_INFO_ENV), &EnvironmentInfo());
}

}  // namespace
}  // namespace weft::mpi
