#include "mpi_hybrid/survive/revocation.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <string>
#include <utility>

namespace weft::mpi::survive {
namespace {

const auto kNobody = [](int) { return false; };

TEST(Revocation, IsToldToFewOfMany) {
  EXPECT_EQ(WhomToTell(0, 1, kNobody), std::vector<int>());
  EXPECT_EQ(WhomToTell(0, 2, kNobody), std::vector<int>{1});
  EXPECT_EQ(WhomToTell(1, 2, kNobody), std::vector<int>{0});
  EXPECT_EQ(WhomToTell(6, 8, kNobody), (std::vector<int>{0, 2, 7}));
  EXPECT_EQ(WhomToTell(0, 1000, kNobody).size(), 10u);
  // In the place of one who is gone the next.
  EXPECT_EQ(WhomToTell(0, 8, [](int place) { return place == 1 || place == 4; }), (std::vector<int>{2, 5}));
  EXPECT_EQ(WhomToTell(0, 3, [](int place) { return place != 0; }), std::vector<int>());
}

TEST(Revocation, TheOldestIsForgotten) {
  Revocations known;
  for (uint64_t i = 1; i <= Revocations::kMost + 1; ++i) known.Add(i, 0, {0, 1});
  EXPECT_FALSE(known.Has(1));
  EXPECT_TRUE(known.Has(2));
  EXPECT_TRUE(known.Has(Revocations::kMost + 1));
}

// Processes of which some die with what they have sent lost in part; whoever lives and learns of deaths passes it on.
class Job {
 public:
  Job(uint32_t seed, int size) : random_(seed), size_(size), members_(static_cast<size_t>(size)), everyone_(static_cast<size_t>(size)) {
    for (int i = 0; i < size; ++i) everyone_[static_cast<size_t>(i)] = i;
    for (Member& member : members_) member.knows_dead.resize(members_.size());
  }

  void Run() {
    Hear(Pick());
    for (;;) {
      if (random_() % 4 == 0 && dead_ + 1 < size_) Kill(Pick());
      std::vector<std::pair<int, int>> possible;  // a message that comes, or (negative) news of a death
      for (int to = 0; to < size_; ++to) {
        const Member& member = At(to);
        if (member.dead) continue;
        if (!member.coming.empty()) possible.emplace_back(to, 0);
        for (int from = 0; from < size_; ++from) {
          if (At(from).dead && !member.knows_dead[static_cast<size_t>(from)]) possible.emplace_back(to, -1 - from);
        }
      }
      if (possible.empty()) return;
      const auto [to, what] = possible[random_() % possible.size()];
      if (what < 0) {
        At(to).knows_dead[static_cast<size_t>(-1 - what)] = true;
        Spread(to);
      } else {
        At(to).coming.pop_front();
        Hear(to);
      }
    }
  }

  // Whoever lives knows, or nobody who lives does.
  void Check() {
    int know = 0;
    for (const Member& member : members_) know += !member.dead && member.revocations.Has(1);
    EXPECT_TRUE(know == 0 || know == size_ - dead_) << know << " of " << size_ - dead_;
  }

 private:
  struct Member {
    bool dead = false;
    Revocations revocations;
    std::deque<int> coming;  // from whom
    std::vector<bool> knows_dead;
  };

  Member& At(int rank) { return members_[static_cast<size_t>(rank)]; }
  int Pick() {
    int rank;
    do {
      rank = static_cast<int>(random_() % members_.size());
    } while (At(rank).dead);
    return rank;
  }
  void Kill(int rank) {
    At(rank).dead = true;
    ++dead_;
    for (Member& member : members_) std::erase_if(member.coming, [&](int from) { return from == rank && random_() % 2 == 0; });
  }
  void Hear(int rank) {
    if (At(rank).revocations.Has(1)) return;
    At(rank).revocations.Add(1, rank, everyone_);
    Spread(rank);
  }
  void Spread(int rank) {
    Member& member = At(rank);
    member.revocations.Spread([&](int process) { return member.knows_dead[static_cast<size_t>(process)]; },
                              [&](uint64_t, int process) { At(process).coming.push_back(rank); });
  }

  std::mt19937 random_;
  const int size_;
  int dead_ = 0;
  std::vector<Member> members_;
  std::vector<int> everyone_;
};

TEST(Revocation, IsHeardByAllThatLiveOrByNobody) {
  for (uint32_t seed = 1; seed <= 2000 && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Job job(seed, 2 + static_cast<int>(seed % 20));
    job.Run();
    job.Check();
  }
}

}  // namespace
}  // namespace weft::mpi::survive
