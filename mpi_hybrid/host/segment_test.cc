#include "mpi_hybrid/host/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/page_size.h"
#include "mpi_hybrid/host/gathering.h"

namespace weft::mpi::host {
namespace {

const std::vector<int> kRanks = {2, 5, 7};

class SegmentTest : public ::testing::Test {
 protected:
  SegmentTest() : first_(Segment::Create(kRanks, 0, &why_)) { EXPECT_NE(first_, nullptr) << why_; }

  std::unique_ptr<Segment> Join(int place) {
    return Segment::Join(Descriptor(fcntl(first_->memory_descriptor(), F_DUPFD_CLOEXEC, 0)), kRanks, place, &why_);
  }
  static bool Rings(const Segment& segment) {
    pollfd bell = {segment.bell_fd(), POLLIN, 0};
    return poll(&bell, 1, 0) == 1;
  }

  std::string why_;
  std::unique_ptr<Segment> first_;
};

TEST_F(SegmentTest, ThoseWhoJoinedAreThereForAllAndNobodyElse) {
  const auto last = Join(2);
  ASSERT_NE(last, nullptr) << why_;
  for (Segment* one : {first_.get(), last.get()}) {
    EXPECT_FALSE(one->PlaceOf(7)) << "not settled";
    one->Settle();
    EXPECT_TRUE(one->has_company());
    EXPECT_EQ(one->PlaceOf(2), 0);
    EXPECT_EQ(one->PlaceOf(5), std::nullopt);
    EXPECT_EQ(one->PlaceOf(7), 2);
    EXPECT_EQ(one->PlaceOf(6), std::nullopt);
    EXPECT_EQ(one->IdAt(2), 7);
  }
}

TEST_F(SegmentTest, WhatOneWritesTheOthersRead) {
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  std::strcpy(reinterpret_cast<char*>(first_->OfPlace(2)), "to all");
  EXPECT_STREQ(reinterpret_cast<char*>(second->OfPlace(2)), "to all");
  EXPECT_EQ(*second->OfPlace(1), 0);
  std::strcpy(reinterpret_cast<char*>(first_->OfPair(0, 1)), "to one");
  EXPECT_STREQ(reinterpret_cast<char*>(second->OfPair(0, 1)), "to one");
  EXPECT_EQ(*second->OfPair(1, 0), 0);
}

TEST(SegmentLayoutTest, EachPairHasAPlaceOfItsOwn) {
  for (const size_t places : {1, 2, 16, 17, 40}) {
    std::set<size_t> offsets;
    for (size_t from = 0; from < places; ++from) {
      for (size_t to = 0; to < places; ++to) offsets.insert(PairOffset(from, to, places));
    }
    EXPECT_EQ(offsets.size(), places * places);
    EXPECT_LE(PairsStart(places) + *offsets.rbegin() + kPairBytes, FixedBytes(places));
  }
}

TEST(SegmentLayoutTest, APlaceReadsAndWritesInFewPageTables) {
  constexpr size_t kPlaces = 1000, kTable = 2 << 20;
  std::set<size_t> tables;
  for (size_t other = 0; other < kPlaces; ++other) {
    tables.insert(PairOffset(other, 500, kPlaces) / kTable);
    tables.insert(PairOffset(500, other, kPlaces) / kTable);
  }
  EXPECT_LT(tables.size(), 100U);
}

TEST_F(SegmentTest, ARangeIsOfTheOneWhoReservedItAndOfThoseWhoAreTold) {
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  const size_t page = PageSize(), bytes = 2 * page + 1808;
  const auto range = first_->Reserve(bytes), other = second->Reserve(1);
  ASSERT_TRUE(range && other);
  EXPECT_GE(*other, *range + bytes);
  const Mapping mine = first_->Map(*range, bytes), theirs = second->Map(*range + page, bytes - page);
  ASSERT_TRUE(mine && theirs);
  mine.data()[page] = 77;
  EXPECT_EQ(theirs.data()[0], 77);
  first_->Discard(*range, bytes);
  EXPECT_EQ(theirs.data()[0], 0);
}

TEST_F(SegmentTest, WhatIsNoRangeIsNotMapped) {
  EXPECT_FALSE(first_->Map(0, kPage)) << "the slots";
  EXPECT_FALSE(first_->Map(FixedBytes(kRanks.size()) + 1, kPage));
  EXPECT_FALSE(first_->Map(UINT64_MAX - PageSize() + 1, PageSize()));
  EXPECT_FALSE(first_->Map(uint64_t{1} << 55, UINT64_MAX));
  EXPECT_FALSE(first_->Reserve(0));
  EXPECT_FALSE(first_->Reserve(UINT64_MAX));
}

TEST_F(SegmentTest, NobodyCanMakeTheMemoryShorterOrLonger) {
  EXPECT_EQ(ftruncate(first_->memory_descriptor(), 4096), -1);
  EXPECT_EQ(errno, EPERM);
  const int seals = fcntl(first_->memory_descriptor(), F_GET_SEALS);
  EXPECT_EQ(seals & (F_SEAL_SHRINK | F_SEAL_SEAL), F_SEAL_SHRINK | F_SEAL_SEAL);
}

TEST_F(SegmentTest, MemoryThatCouldBeMadeShorterIsNotJoined) {
  Descriptor other(memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(other.get(), static_cast<off_t>(FixedBytes(kRanks.size()))), 0);
  EXPECT_EQ(Segment::Join(std::move(other), kRanks, 1, &why_), nullptr);
  EXPECT_EQ(Segment::Join(Descriptor(dup(STDOUT_FILENO)), kRanks, 1, &why_), nullptr);
  const std::vector<int> more = {1, 2, 3, 4, 5};
  Descriptor same(fcntl(first_->memory_descriptor(), F_DUPFD_CLOEXEC, 0));
  EXPECT_EQ(Segment::Join(std::move(same), more, 1, &why_), nullptr);
  EXPECT_NE(why_.find("3 ranks"), std::string::npos) << why_;
}

TEST_F(SegmentTest, ABellRingsForWhoSleepsAndOnce) {
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  first_->Ring(1);
  EXPECT_FALSE(Rings(*second)) << "it is awake";
  second->WillSleep();
  EXPECT_FALSE(Rings(*second));
  first_->Ring(1);
  first_->Ring(1);
  EXPECT_TRUE(Rings(*second));
  EXPECT_FALSE(Rings(*first_));
  second->IsAwake();
  EXPECT_FALSE(Rings(*second));
  first_->Ring(1);
  EXPECT_FALSE(Rings(*second));
}

TEST_F(SegmentTest, ANapEndsByARingWithoutTheBell) {
  using std::chrono::milliseconds;
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  second->WillSleep();
  EXPECT_FALSE(second->Nap(milliseconds(2))) << "nobody rang";
  first_->Ring(1);
  EXPECT_TRUE(Rings(*second)) << "it is asleep, and naps no more";
  EXPECT_TRUE(second->Nap(milliseconds(60'000))) << "the ring came before";
  second->IsAwake();
  second->Silence();
  for (int i = 0; i < 100; ++i) {
    second->WillSleep();
    std::thread other([&] { i % 2 == 0 ? first_->Ring(1) : second->EndNap(); });
    EXPECT_TRUE(second->Nap(milliseconds(60'000)));
    other.join();
    second->IsAwake();
  }
}

TEST_F(SegmentTest, ARingBetweenTwoAnnouncementsOfOneSleepIsNotLost) {
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  second->WillSleep();  // a communicator's
  first_->Ring(1);
  second->WillSleep();  // the messages'
  EXPECT_TRUE(second->Nap(std::chrono::milliseconds(60'000)));
}

// Other bits of the word have other meanings, and any process of the user can write them.
TEST_F(SegmentTest, ANapEndsInTimeHoweverOftenItsWordChanges) {
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  std::atomic<bool> over{false};
  std::thread other([&] {
    while (!over) first_->attention_of(1).fetch_xor(2);
  });
  second->WillSleep();
  EXPECT_FALSE(second->Nap(std::chrono::milliseconds(20)));
  over = true;
  other.join();
}

TEST_F(SegmentTest, WhoDoesNotKnowTheKeyDoesNotRing) {
  Bell bell, stranger;
  ASSERT_TRUE(bell.Open() && stranger.Open());
  stranger.Ring({.name = bell.name().name, .key = stranger.name().key});
  pollfd look = {bell.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&look, 1, 0), 0);
  for (int i = 0; i < 1000; ++i) stranger.Ring(bell.name());
  EXPECT_EQ(poll(&look, 1, 0), 1);
  bell.Silence();
  EXPECT_EQ(poll(&look, 1, 0), 0);
}

TEST_F(SegmentTest, WhoLeavesIsNotPresentAndWakesThoseWhoSleep) {
  const auto second = Join(1);
  ASSERT_NE(second, nullptr) << why_;
  EXPECT_TRUE(first_->IsPresent(1));
  EXPECT_FALSE(first_->IsPresent(2));
  first_->WillSleep();
  second->Leave();
  EXPECT_TRUE(Rings(*first_));
  EXPECT_FALSE(first_->IsPresent(1));
}

// A process that joins at `place`, and is there until the pipe is closed.
class Child {
 public:
  Child(const Segment& segment, int place, bool leaves_a_child) {
    int up[2], down[2];
    EXPECT_EQ(pipe(up) | pipe(down), 0);
    pid = fork();
    if (pid == 0) {
      close(down[1]);
      std::string why;
      const auto mine = Segment::Join(Descriptor(fcntl(segment.memory_descriptor(), F_DUPFD_CLOEXEC, 0)), kRanks,
                                          place, &why);
      char byte = mine != nullptr;
      if (leaves_a_child && fork() == 0) {
        (void)!read(down[0], &byte, 1);
        _exit(0);
      }
      (void)!write(up[1], &byte, 1);
      (void)!read(down[0], &byte, 1);
      _exit(0);
    }
    close(down[0]);
    close(up[1]);
    end_ = down[1];
    char byte = 0;
    EXPECT_EQ(read(up[0], &byte, 1), 1);
    EXPECT_EQ(byte, 1);
    close(up[0]);
  }
  ~Child() {
    close(end_);
    if (pid > 0) waitpid(pid, nullptr, 0);
  }
  void Kill() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    pid = 0;
  }

  pid_t pid;

 private:
  int end_;
};

TEST_F(SegmentTest, TheKernelSaysWhoIsThereAndWhoDiedThoughAForkedChildLives) {
  for (const bool leaves_a_child : {false, true}) {
    const int place = leaves_a_child ? 1 : 2;
    Child child(*first_, place, leaves_a_child);
    EXPECT_EQ(first_->PidOf(place), child.pid);
    child.Kill();
    EXPECT_EQ(first_->PidOf(place), 0);
    EXPECT_FALSE(first_->IsPresent(place));
  }
}

TEST_F(SegmentTest, APlaceIsOfOneProcess) {
  Child child(*first_, 2, false);
  EXPECT_EQ(Join(2), nullptr);
}

}  // namespace
}  // namespace weft::mpi::host
