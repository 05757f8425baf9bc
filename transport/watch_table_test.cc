#include "transport/watch_table.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>

namespace weft::transport {
namespace {

class NoHandler : public ReadyHandler {
 public:
  void OnReady(Interest) override {}
};

// An eventfd that is readable, watched.
class LendingTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(epoll_.Open(), 0);
    ASSERT_GE(fd_, 0);
    id_ = *table_.Add(fd_, {.read = true}, std::make_shared<NoHandler>(), nullptr);
  }
  void TearDown() override {
    table_.Remove(id_);
    close(fd_);
  }

  static bool Reports(EpollSet& set, WatchId id) {
    epoll_event storage[4];
    for (const epoll_event& event : set.Poll(storage)) {
      if (event.data.u64 == id) return true;
    }
    return false;
  }
  // Whether epoll reports the watch.
  bool Reported() { return Reports(epoll_.set(), id_); }

  Epoll epoll_;
  WatchTable table_{epoll_.set()};
  int fd_ = eventfd(1, EFD_NONBLOCK | EFD_CLOEXEC);
  WatchId id_ = 0;
};

TEST_F(LendingTest, NothingIsLentBeforeLendingOpens) {
  table_.Lend(id_);
  EXPECT_TRUE(Reported());
}

TEST_F(LendingTest, ALentWatchIsQuietForAsLongAsItIsLentAgain) {
  table_.OpenLending();
  for (int round = 0; round < 3; ++round) {
    table_.Lend(id_);
    table_.ReclaimIdle();
    EXPECT_FALSE(Reported());
  }
  table_.ReclaimIdle();
  EXPECT_TRUE(Reported());
}

TEST_F(LendingTest, ClosingTakesBackWhatIsInUse) {
  table_.OpenLending();
  table_.Lend(id_);
  EXPECT_FALSE(Reported());
  EXPECT_TRUE(table_.CloseLending());
  EXPECT_TRUE(Reported());
  table_.Lend(id_);
  EXPECT_TRUE(Reported());
}

TEST_F(LendingTest, InterestThatChangesMeanwhileHoldsAfterwards) {
  table_.OpenLending();
  table_.Lend(id_);
  table_.SetInterest(id_, {});
  EXPECT_TRUE(table_.CloseLending());
  EXPECT_FALSE(Reported());
  table_.SetInterest(id_, {.read = true});
  EXPECT_TRUE(Reported());
}

TEST_F(LendingTest, TheSlotOfARemovedLentWatchServesAgain) {
  table_.OpenLending();
  table_.Lend(id_);
  table_.Remove(id_);
  id_ = *table_.Add(fd_, {.read = true}, std::make_shared<NoHandler>(), nullptr);
  EXPECT_TRUE(Reported());
  table_.Lend(id_);
  EXPECT_FALSE(Reported());
  EXPECT_TRUE(table_.CloseLending());
  EXPECT_TRUE(Reported());
}

// The same, in a group whose own descriptor is watched.
class GroupTest : public LendingTest {
 protected:
  void SetUp() override {
    LendingTest::SetUp();
    ASSERT_EQ(group_->set.Open(), 0);
    group_id_ = *table_.AddGroup(*group_, std::make_shared<NoHandler>());
    ASSERT_EQ(table_.Join(id_, group_), 0);
  }
  void TearDown() override {
    table_.Dissolve(group_);
    table_.Remove(group_id_);
    LendingTest::TearDown();
  }

  bool GroupReported() { return Reports(epoll_.set(), group_id_); }
  bool ReportedInGroup() { return Reports(group_->set, id_); }

  std::shared_ptr<WatchTable::Group> group_ = std::make_shared<WatchTable::Group>();
  WatchId group_id_ = 0;
};

TEST_F(GroupTest, TheWatchIsTheGroupsAndTheGroupIsReported) {
  EXPECT_FALSE(Reported());
  EXPECT_TRUE(GroupReported());
  EXPECT_TRUE(ReportedInGroup());
  EXPECT_EQ(table_.Join(id_, group_), 0) << "twice is once";
  EXPECT_EQ(group_->members, 1);
}

TEST_F(GroupTest, InterestThatChangesHoldsInTheGroup) {
  table_.SetInterest(id_, {});
  EXPECT_FALSE(ReportedInGroup());
  EXPECT_FALSE(GroupReported());
  table_.SetInterest(id_, {.read = true});
  EXPECT_TRUE(ReportedInGroup());
}

TEST_F(GroupTest, ALentGroupIsQuietButKeepsItsWatches) {
  table_.OpenLending();
  table_.Lend(group_id_);
  EXPECT_FALSE(GroupReported());
  EXPECT_TRUE(ReportedInGroup());
  table_.Lend(id_);  // it is not the network's to lend
  EXPECT_TRUE(ReportedInGroup());
  EXPECT_TRUE(table_.CloseLending());
  EXPECT_TRUE(GroupReported());
}

TEST_F(GroupTest, AWatchOfSeveralGroupsIsReportedInEachUntilItIsRemoved) {
  auto second = std::make_shared<WatchTable::Group>();
  ASSERT_EQ(second->set.Open(), 0);
  ASSERT_EQ(table_.Join(id_, second), 0);
  EXPECT_TRUE(ReportedInGroup());
  EXPECT_TRUE(Reports(second->set, id_));
  table_.Dissolve(second);
  EXPECT_FALSE(Reports(second->set, id_));
  EXPECT_TRUE(ReportedInGroup());
  EXPECT_FALSE(Reported());
  table_.Remove(id_);
  EXPECT_FALSE(ReportedInGroup());
  EXPECT_EQ(group_->members, 0);
  EXPECT_EQ(table_.Join(id_, group_), ENOENT);
}

TEST_F(GroupTest, TheWatchesOfAGroupThatIsDissolvedAreTheNetworksAgain) {
  table_.Dissolve(group_);
  EXPECT_TRUE(Reported());
  EXPECT_FALSE(GroupReported());
}

TEST_F(LendingTest, ALentWatchThatJoinsAGroupDoesNotComeBackToTheNetwork) {
  auto group = std::make_shared<WatchTable::Group>();
  ASSERT_EQ(group->set.Open(), 0);
  table_.OpenLending();
  table_.Lend(id_);
  ASSERT_EQ(table_.Join(id_, group), 0);
  EXPECT_TRUE(Reports(group->set, id_));
  EXPECT_TRUE(table_.CloseLending());
  EXPECT_FALSE(Reported());
  EXPECT_TRUE(Reports(group->set, id_));
}

}  // namespace
}  // namespace weft::transport
