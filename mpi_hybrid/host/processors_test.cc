#include "mpi_hybrid/host/processors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <memory>
#include <string>
#include <vector>

namespace weft::mpi::host {
namespace {

const std::vector<int> kRanks = {0, 1};

class ProcessorsTest : public ::testing::Test {
 protected:
  ProcessorsTest() : first_(Segment::Create(kRanks, 0, &why_)) {
    EXPECT_NE(first_, nullptr) << why_;
    second_ = Segment::Join(Descriptor(fcntl(first_->memory_descriptor(), F_DUPFD_CLOEXEC, 0)), kRanks, 1, &why_);
    EXPECT_NE(second_, nullptr) << why_;
    EXPECT_EQ(sched_getaffinity(0, sizeof(allowed_), &allowed_), 0);
  }
  ~ProcessorsTest() override { sched_setaffinity(0, sizeof(allowed_), &allowed_); }

  void ExpectAllowed(const cpu_set_t& wanted) {
    cpu_set_t now;
    ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
    EXPECT_TRUE(CPU_EQUAL(&now, &wanted));
  }
  // Only this one: the scheduler does nothing of its own.
  static cpu_set_t Only(int processor) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(processor, &one);
    return one;
  }

  std::string why_;
  std::unique_ptr<Segment> first_, second_;
  cpu_set_t allowed_;
};

TEST_F(ProcessorsTest, WhoMayRunOnOneProcessorAloneSharesIt) {
  const cpu_set_t one = Only(sched_getcpu());
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  Processors first(*first_), second(*second_);
  EXPECT_FALSE(first.Shares()) << "nobody else has waited yet";
  EXPECT_TRUE(second.Shares());
  EXPECT_TRUE(first.Shares());
  ExpectAllowed(one);
}

TEST_F(ProcessorsTest, TheLaterOneMovesAndMayRunWhereItMightBefore) {
  if (CPU_COUNT(&allowed_) < 2) GTEST_SKIP() << "there is one processor";
  const int here = sched_getcpu();
  // As another process that stays there.
  first_->processor_of(0).store(static_cast<uint32_t>(here) + 1);
  Processors second(*second_);
  for (int i = 0; i < 1000 && sched_getcpu() == here; ++i) (void)second.Shares();
  EXPECT_NE(second_->processor_of(1).load(), static_cast<uint32_t>(here) + 1);
  ExpectAllowed(allowed_);
}

TEST_F(ProcessorsTest, WhatAnotherSaysMayBeNonsense) {
  first_->processor_of(0).store(~uint32_t{0});
  Processors second(*second_);
  EXPECT_FALSE(second.Shares());
  ExpectAllowed(allowed_);
}

}  // namespace
}  // namespace weft::mpi::host
