#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace weft {
namespace {

TEST(ProcessorsTest, AThreadThatMayRunOnOneHasOnlyOne) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(ProcessorCount(), 1);
  EXPECT_TRUE(OnlyOneProcessor());
}

}  // namespace
}  // namespace weft
