#include "transport/watch_table.h"

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

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

  // Whether epoll reports the watch.
  bool Reported() {
    epoll_event storage[4];
    for (const epoll_event& event : epoll_.Poll(storage)) {
      if (event.data.u64 == id_) return true;
    }
    return false;
  }

  Epoll epoll_;
  WatchTable table_{epoll_};
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

}  // namespace
}  // namespace weft::transport
