// Members of a communicator on one host, each a thread, in random collectives of which each knows what it has to end
// with.
#include "mpi_hybrid/coll/host/member.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "mpi_hybrid/coll/testing/typed_buffer.h"

namespace weft::mpi::coll {
namespace {

// Where each member is a thread, which yields. `dead`: a member that comes no more; `leaver`: one that waits no more.
class Yielding final : public Waiter {
 public:
  Yielding(const std::atomic<int>& dead, const std::atomic<int>& leaver) : dead_(dead), leaver_(leaver) {}
  void set_member(Member* member) { member_ = member; }

  Error Until(Missing missing) override {
    for (int awaited = missing(); awaited >= 0; awaited = missing()) {
      if (member_->me() == leaver_.load()) return Error(MPIX_ERR_REVOKED, "revoked");
      const bool dead = awaited == dead_.load(), passed = member_->HasPassed(awaited);
      Error gone = member_->Gone();
      if (missing() != awaited) continue;  // what it did before is there by now
      if (!gone.ok()) return gone;
      if (dead) {
        member_->NoteGone(awaited);
        return member_->Gone();
      }
      if (passed) return Error(MPI_ERR_TRUNCATE, "passed");
      sched_yield();
    }
    return {};
  }
  void Ring(int) override {}

 private:
  const std::atomic<int>& dead_;
  const std::atomic<int>& leaver_;
  Member* member_ = nullptr;
};

// All threads have the same memory.
class SameProcess final : public Reach {
 public:
  // `refuses`: a read that is refused, of so many; 0: none. `before`: is called before each.
  SameProcess(int me, bool reaches, unsigned refuses, const std::function<void(int)>& before)
      : me_(me), reaches_(reaches), refuses_(refuses), before_(before), random_(static_cast<unsigned>(me)) {}

  bool ReachesAll() override { return reaches_; }
  Outcome Read(int, uint64_t address, void* to, size_t bytes) override {
    if (before_) before_(me_);
    const bool refused = refuses_ != 0 && random_() % refuses_ == 0;
    std::memcpy(to, reinterpret_cast<const void*>(address), refused ? bytes / 2 : bytes);
    ++reads_;
    return refused ? Outcome::kRefused : Outcome::kRead;
  }
  static inline std::atomic<uint64_t> reads_{0};

 private:
  const int me_;
  const bool reaches_;
  const unsigned refuses_;
  const std::function<void(int)>& before_;
  std::mt19937 random_;
};

class Members : public testing::Test {
 protected:
  // Runs `body(member, random)` for each of them; all have the same random numbers.
  void Run(int members, unsigned seed, const std::function<void(Member&, std::mt19937&)>& body) {
    SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(members) + " members");
    const size_t bytes = Memory::Bytes(members);
    void* const base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ASSERT_NE(base, MAP_FAILED);
    base_ = static_cast<uint8_t*>(base);
    std::vector<std::thread> threads;
    for (int i = 0; i < members; ++i) {
      threads.emplace_back([&, i] {
        Yielding waiter(dead_, leaver_);
        SameProcess reach(i, i != cannot_reach_, refuses_, before_read_);
        Member member(Memory(static_cast<uint8_t*>(base), members), i, members, waiter, reach, seed % 2 == 0);
        waiter.set_member(&member);
        std::mt19937 random(seed);
        body(member, random);
        if (HasFailure()) dead_ = i;  // the others need not wait for it
      });
    }
    for (std::thread& thread : threads) thread.join();
    munmap(base, bytes);
  }

  uint8_t* base_ = nullptr;  // the memory of the members
  std::atomic<int> dead_{-1}, leaver_{-1};
  std::function<void(int)> before_read_;  // of the member that reads
  int cannot_reach_ = -1;  // a member that reads no other's memory
  unsigned refuses_ = 0;
};

// Element `i` of what `rank` gives in a collective.
uint32_t Given(unsigned salt, int rank, MPI_Aint i) {
  return salt * 2654435761u + static_cast<uint32_t>(rank) * 40503u + static_cast<uint32_t>(i) * 97u;
}

std::vector<uint32_t> Words(unsigned salt, int rank, MPI_Aint count) {
  std::vector<uint32_t> words(static_cast<size_t>(count));
  for (MPI_Aint i = 0; i < count; ++i) words[static_cast<size_t>(i)] = Given(salt, rank, i);
  return words;
}

// Words, or words with a gap behind each.
class Spread {
 public:
  Spread(const std::vector<uint32_t>& words, bool gaps) : type_(gaps ? WithGap() : *Datatype::Find(MPI_UINT32_T)), step_(gaps ? 2 : 1), memory_(words.size() * step_) {
    for (size_t i = 0; i < words.size(); ++i) memory_[i * step_] = words[i];
  }
  Block block(MPI_Aint count) const { return {const_cast<uint32_t*>(memory_.data()), count, &type_}; }
  uint32_t operator[](MPI_Aint i) const { return memory_[static_cast<size_t>(i) * step_]; }

 private:
  static const Datatype& WithGap() {
    static const auto* const type = new Ref<Datatype>(MakeResized(*Datatype::Find(MPI_UINT32_T), 0, 2 * sizeof(uint32_t)));
    return **type;
  }

  const Datatype& type_;
  const size_t step_;
  std::vector<uint32_t> memory_;
};

// One random collective. Sizes around each of the limits.
void One(Member& member, std::mt19937& random) {
  const Datatype& type = *Datatype::Find(MPI_UINT32_T);
  const Op& sum = *Op::Find(MPI_SUM);
  const int n = member.members(), me = member.me();
  const unsigned salt = static_cast<unsigned>(random());
  const int root = static_cast<int>(random() % static_cast<unsigned>(n));
  const size_t kLimits[] = {0, kInline, kShort, 4096, kSlot, kArea / 2, kArea, 3 * kArea, Member::kInPlaceBeyondArea, Member::kInPlace};
  MPI_Aint count = static_cast<MPI_Aint>(kLimits[random() % std::size(kLimits)] / 4) + static_cast<int>(random() % 5) - 2;
  const unsigned kind = random() % 8;
  const bool in_place = random() % 2 == 0;
  if (kind > 3 && n > 3) count = std::min<MPI_Aint>(count, kArea / 4 + 2);  // each has that of all others
  count = std::max<MPI_Aint>(count, 0);
  const FoldOrder order{static_cast<FoldOrder::Shape>(random() % 4), root};
  const std::vector<uint32_t> mine = Words(salt, me, count);
  auto all_words = [&](auto word) {
    std::vector<uint32_t> words(static_cast<size_t>(count * n));
    for (int rank = 0; rank < n; ++rank) {
      for (MPI_Aint i = 0; i < count; ++i) words[static_cast<size_t>(rank * count + i)] = word(rank, i);
    }
    return words;
  };
  auto block = [&](std::vector<uint32_t>& words) { return Block{words.data(), count, &type}; };
  std::vector<uint32_t> expected;
  std::vector<uint32_t> out(static_cast<size_t>(count)), everything(kind > 3 ? static_cast<size_t>(count * n) : 0);
  std::vector<uint32_t> given = mine;
  switch (kind) {
    case 0:
      ASSERT_EQ(member.Barrier().mpi_class(), MPI_SUCCESS);
      return;
    case 1:
      ASSERT_EQ(member.Broadcast(block(given), root).mpi_class(), MPI_SUCCESS);
      ASSERT_EQ(given, Words(salt, root, count));
      return;
    case 2:
    case 3:
      expected.resize(static_cast<size_t>(count));
      for (int rank = 0; rank < n; ++rank) {
        for (MPI_Aint i = 0; i < count; ++i) expected[static_cast<size_t>(i)] += Given(salt, rank, i);
      }
      if (in_place) out = mine;
      if (kind == 2) {
        ASSERT_EQ(member.AllReduce(in_place ? out.data() : mine.data(), out.data(), count, type, sum, order).mpi_class(), MPI_SUCCESS);
      } else {
        ASSERT_EQ(member.Reduce(in_place && me == root ? out.data() : mine.data(), out.data(), count, type, sum, order, root).mpi_class(),
                  MPI_SUCCESS);
      }
      if (kind == 2 || me == root) {
        ASSERT_EQ(out, expected);
      }
      return;
    case 4:
      ASSERT_EQ(member.Gather(block(given), block(everything), root).mpi_class(), MPI_SUCCESS);
      if (me == root) {
        ASSERT_EQ(everything, all_words([&](int rank, MPI_Aint i) { return Given(salt, rank, i); }));
      }
      return;
    case 5:
      if (me == root) everything = all_words([&](int rank, MPI_Aint i) { return Given(salt, rank, i); });
      ASSERT_EQ(member.Scatter(block(everything), block(out), root).mpi_class(), MPI_SUCCESS);
      ASSERT_EQ(out, mine);
      return;
    case 6:
      ASSERT_EQ(member.AllGather(block(given), block(everything)).mpi_class(), MPI_SUCCESS);
      ASSERT_EQ(everything, all_words([&](int rank, MPI_Aint i) { return Given(salt, rank, i); }));
      return;
    default: {
      std::vector<uint32_t> all_given = all_words([&](int to, MPI_Aint i) { return Given(salt + static_cast<unsigned>(to), me, i); });
      if (in_place) everything = all_given;
      ASSERT_EQ(member.AllToAll(in_place ? Block{.in_place = true} : block(all_given), block(everything)).mpi_class(), MPI_SUCCESS);
      ASSERT_EQ(everything, all_words([&](int from, MPI_Aint i) { return Given(salt + static_cast<unsigned>(me), from, i); }));
    }
  }
}

class MembersOf : public Members, public testing::WithParamInterface<int> {};

TEST_P(MembersOf, RandomCollectivesGiveWhatTheStandardSays) {
  const char* const more = std::getenv("MEMBER_SEEDS");
  const unsigned seeds = more != nullptr ? static_cast<unsigned>(std::atoi(more)) : 6;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    Run(GetParam(), seed, [&](Member& member, std::mt19937& random) {
      for (int i = 0; i < 60 && !HasFatalFailure(); ++i) One(member, random);
    });
    ASSERT_FALSE(HasFailure()) << "seed " << seed;
  }
}
INSTANTIATE_TEST_SUITE_P(Numbers, MembersOf, testing::Values(2, 3, 4, 7, 11));

// Whoever may not read, from the start or at times, gets its data through the common memory, and the others with it.
TEST_F(Members, ADeadMemberThatIsNoneIsNoDeath) {
  Run(3, 1, [this](Member& member, std::mt19937&) {
    EXPECT_TRUE(member.Barrier().ok());
    Memory(base_, member.members()).head().gone = 4;
    EXPECT_EQ(member.Gone().mpi_class(), MPI_ERR_OTHER);
  });
}

TEST_F(Members, KnowsWhetherItsWordsWereOverwritten) {
  Run(3, 1, [this](Member& member, std::mt19937&) {
    for (int i = 0; i < 9; ++i) {
      int value = 7;
      EXPECT_TRUE(member.Barrier().ok());
      EXPECT_TRUE(member.Broadcast({&value, 1, &*Datatype::Find(MPI_INT)}, i % 3).ok());
      EXPECT_TRUE(member.HasItsWords());
    }
    MemberLines& lines = Memory(base_, member.members()).lines(member.me());
    for (std::atomic<uint64_t>* word : {&lines.posts[0].turn, &lines.posts[kTurns - 1].turn, &lines.ready.value, &lines.taken.value}) {
      for (const uint64_t change : {uint64_t{1}, ~uint64_t{0}}) {
        word->fetch_add(change);
        EXPECT_FALSE(member.HasItsWords());
        word->fetch_sub(change);
        EXPECT_TRUE(member.HasItsWords());
      }
    }
  });
}

// Its owner does not write the word meanwhile; the others would take what is of a turn before, or would write what it still reads.
TEST_F(Members, AnotherProcessMovesACounterAndNobodyIsMisled) {
  constexpr int kRoot = 1, kOther = 2;
  for (const bool of_root : {true, false}) {
    for (const uint64_t jumps : {1, 2}) {
      SCOPED_TRACE((of_root ? "post" : "taken") + std::string(" moved by ") + std::to_string(jumps));
      std::atomic<int> in_step{0}, ended{0};
      Run(3, 2, [&](Member& member, std::mt19937&) {
        int value = 7;
        const auto broadcast = [&] { return member.Broadcast({&value, 1, &*Datatype::Find(MPI_INT)}, kRoot); };
        for (int i = 0; i < kTurns; ++i) EXPECT_TRUE(broadcast().ok());
        EXPECT_TRUE(member.Barrier().ok());
        ++in_step;
        Error error;
        if (member.me() == (of_root ? kRoot : kOther)) {
          while (in_step < member.members()) sched_yield();
          MemberLines& lines = Memory(base_, member.members()).lines(member.me());
          if (of_root) {
            lines.posts[(member.turn() + 1) % kTurns].turn += jumps * kTurns;
          } else {
            lines.taken.value += jumps * kTurns * kStep;
          }
          while (ended < member.members() - 1) sched_yield();
          error = broadcast();
        } else {
          for (int i = 0; i < 2 * kTurns && error.ok(); ++i) error = broadcast();
          ++ended;
        }
        EXPECT_FALSE(error.ok());
        EXPECT_TRUE(error.mpi_class() == MPI_ERR_OTHER || error.mpi_class() == MPIX_ERR_PROC_FAILED) << error.message();
      });
    }
  }
}

// Whenever that is: what a member gets without an error is what the root gave.
TEST_F(Members, AnotherProcessMovesACounterOfTheRoot) {
  constexpr int kRoot = 1;
  for (int which = 0; which < kTurns + 2; ++which) {
    for (const uint64_t change : {uint64_t{1}, uint64_t{kTurns}, kStep, kTurns * kStep}) {
      SCOPED_TRACE("word " + std::to_string(which) + " moved by " + std::to_string(change));
      std::atomic<int> in_step{0};
      Run(3, 2, [&](Member& member, std::mt19937&) {
        const Datatype& byte = *Datatype::Find(MPI_BYTE);
        std::vector<uint8_t> data(3 * kSlot);
        const auto broadcast = [&](size_t bytes, int value) {
          if (member.me() == kRoot) std::fill(data.begin(), data.end(), static_cast<uint8_t>(value));
          Error error = member.Broadcast({data.data(), static_cast<MPI_Aint>(bytes), &byte}, kRoot);
          EXPECT_TRUE(!error.ok() || std::all_of(data.begin(), data.begin() + static_cast<ptrdiff_t>(bytes), [&](uint8_t got) { return got == value; }));
          return error;
        };
        for (const size_t bytes : {kInline, 3 * kSlot, kInline, 3 * kSlot}) EXPECT_TRUE(broadcast(bytes, 1).ok());
        EXPECT_TRUE(member.Barrier().ok());
        ++in_step;
        if (member.me() == kRoot) {
          while (in_step < member.members()) sched_yield();
          MemberLines& lines = Memory(base_, member.members()).lines(kRoot);
          (which < kTurns ? lines.posts[which].turn : which == kTurns ? lines.ready.value : lines.taken.value) += change;
        }
        Error error;
        for (int i = 0; i < 2 * kTurns && error.ok(); ++i) error = broadcast(i % 2 == 0 ? kInline : 3 * kSlot, i + 2);
      });
    }
  }
}

TEST_F(Members, BlocksThatCannotBeReadWhereTheyLieComeAllTheSame) {
  const auto run = [&](unsigned seed) {
    for (const int members : {2, 3, 11}) {
      Run(members, seed, [&](Member& member, std::mt19937& random) {
        const int n = member.members(), me = member.me();
        for (int i = 0; i < 40; ++i) {
          const unsigned salt = static_cast<unsigned>(random());
          const size_t limits[] = {Member::kInPlaceBeyondArea, Member::kInPlace, kArea / static_cast<size_t>(n)};
          const MPI_Aint count = static_cast<MPI_Aint>(limits[random() % 3] / 4) + static_cast<int>(random() % 3) - 1;
          const bool spread = random() % 8 == 0 && me == static_cast<int>(random() % static_cast<unsigned>(n));  // its data have gaps
          const int root = static_cast<int>(random() % static_cast<unsigned>(n));
          const unsigned kind = random() % 4;
          const Spread given(Words(salt, me, count * n), spread), got(std::vector<uint32_t>(static_cast<size_t>(count * n)), spread);
          const Block from = given.block(count), to = got.block(count);
          Error error = kind == 0   ? member.AllToAll(from, to)
                        : kind == 1 ? member.AllGather(from, to)
                        : kind == 2 ? member.Gather(from, to, root)
                                    : member.Scatter(from, to, root);
          ASSERT_EQ(error.mpi_class(), MPI_SUCCESS) << error.message();
          if (kind == 2 && me != root) continue;
          for (MPI_Aint k = 0; k < count * (kind == 3 ? 1 : n); ++k) {
            const int giver = kind == 3 ? root : static_cast<int>(k / count);
            const MPI_Aint first = kind == 0 || kind == 3 ? me * count : 0;
            ASSERT_EQ(got[k], Given(salt, giver, first + k % count)) << "kind " << kind << ", word " << k;
          }
        }
      });
    }
  };
  uint64_t before = SameProcess::reads_;
  run(1);
  EXPECT_GT(SameProcess::reads_, before) << "some were read where they lie";
  cannot_reach_ = 1;
  before = SameProcess::reads_;
  run(2);
  EXPECT_EQ(SameProcess::reads_, before);
  cannot_reach_ = -1;
  for (const unsigned refuses : {1, 2, 5}) {
    refuses_ = refuses;
    run(refuses);
  }
}

// What one reads whose owner was told meanwhile that it need not wait may be anything.
TEST_F(Members, BlocksOfOneThatHasLeftAreNotTaken) {
  for (int kind = 0; kind < 4; ++kind) {
    std::atomic<bool> left = false;
    std::vector<uint32_t> given[2];  // longer than the members
    leaver_ = -1;
    before_read_ = [&](int reader) {
      if (reader != 0) return;
      leaver_ = 1;
      while (!left) sched_yield();
    };
    Run(2, 2, [&](Member& member, std::mt19937&) {
      const Datatype& type = *Datatype::Find(MPI_UINT32_T);
      const MPI_Aint count = 100'000;
      std::vector<uint32_t>& mine = given[member.me()];
      mine = Words(1, member.me(), 2 * count);
      std::vector<uint32_t> got(mine.size());
      const Block from{mine.data(), count, &type}, to{got.data(), count, &type};
      const Error error = kind == 0   ? member.AllToAll(from, to)
                          : kind == 1 ? member.AllGather(from, to)
                          : kind == 2 ? member.Gather(from, to, 0)
                                      : member.Scatter(from, to, 1);
      ASSERT_EQ(error.mpi_class(), member.me() == 1 ? MPIX_ERR_REVOKED : MPI_ERR_TRUNCATE) << "kind " << kind;
      if (member.me() == 1) {
        std::fill(mine.begin(), mine.end(), 0);
        left = true;
      }
    });
  }
}

TEST_F(Members, ABroadcastTakesTypesOfOtherLayoutsAtOtherRanks) {
  Run(3, 1, [&](Member& member, std::mt19937& random) {
    for (const MPI_Aint count : {1, 5, 3000, 40000, 400000}) {
      std::mt19937 same(static_cast<unsigned>(count));
      const Bytes data = RandomBytes(same, count);
      const Datatype& type = LayoutOfThree((random() + static_cast<unsigned>(member.me())) % 4);
      TypedBuffer buffer(type, count), expected(type, count);
      expected.Put(0, data);
      buffer.Put(0, member.me() == 1 ? data : Bytes(data.size(), 0));
      ASSERT_EQ(member.Broadcast({buffer.origin(), count, &type}, 1).mpi_class(), MPI_SUCCESS);
      ASSERT_TRUE(buffer == expected) << count;
    }
  });
}

TEST_F(Members, ManyGiveEachABlockOfAnyLength) {
  constexpr int kMany = 40;
  Run(kMany, 1, [](Member& member, std::mt19937&) {
    const Datatype& type = *Datatype::Find(MPI_UINT32_T);
    const MPI_Aint most = static_cast<MPI_Aint>(kArea / kMany / sizeof(uint32_t));  // in one step
    for (const MPI_Aint count : {MPI_Aint{0}, MPI_Aint{2}, most, most + 1, 3 * most}) {
      std::vector<uint32_t> given = Words(static_cast<unsigned>(count), member.me(), count * kMany), got(given.size());
      ASSERT_EQ(member.AllToAll({given.data(), count, &type}, {got.data(), count, &type}).mpi_class(), MPI_SUCCESS);
      for (MPI_Aint i = 0; i < count * kMany; ++i) {
        const int from = static_cast<int>(i / count);
        ASSERT_EQ(got[static_cast<size_t>(i)], Given(static_cast<unsigned>(count), from, member.me() * count + i % count)) << count << ", from " << from;
      }
    }
  });
}

TEST_F(Members, CallsThatDoNotMatchAreAnErrorAndTheNextOnesWork) {
  for (const int members : {2, 3, 11}) {
    Run(members, 1, [&](Member& member, std::mt19937&) {
      const Datatype& type = *Datatype::Find(MPI_INT);
      const Op& sum = *Op::Find(MPI_SUM);
      std::vector<int> a(4), b(4);
      for (int round = 0; round < 50; ++round) {
        const MPI_Aint count = member.me() == 0 ? 3 : 4;
        if (member.me() != 0) {
          ASSERT_EQ(member.Broadcast({a.data(), count, &type}, 0).mpi_class(), MPI_ERR_TRUNCATE);
        } else {
          ASSERT_EQ(member.Broadcast({a.data(), count, &type}, 0).mpi_class(), MPI_SUCCESS);
        }
        ASSERT_EQ(member.AllReduce(a.data(), b.data(), count, type, sum, {}).mpi_class(), MPI_ERR_TRUNCATE);
        int one = 1, all = 0;
        ASSERT_EQ(member.AllReduce(&one, &all, 1, type, sum, {}).mpi_class(), MPI_SUCCESS);
        ASSERT_EQ(all, members);
      }
    });
  }
}

TEST_F(Members, AllHearOfOneThatDies) {
  constexpr int kLong = 70'000;  // beyond the area
  for (const int members : {2, 4, 11}) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
      dead_ = -1;
      std::vector<int> given(static_cast<size_t>(members) * kLong), got(given.size() * static_cast<size_t>(members));  // others may read those of one that has left
      const auto numbers = [&](Member& member) {
        const size_t me = static_cast<size_t>(member.me());
        return std::pair(given.data() + me * kLong, got.data() + me * given.size());
      };
      Run(members, seed, [&](Member& member, std::mt19937& random) {
        const int mortal = static_cast<int>(random() % static_cast<unsigned>(members));
        const int last = static_cast<int>(random() % 20);
        const Datatype& type = *Datatype::Find(MPI_INT);
        const auto [a, b] = numbers(member);
        const Block mine{a, kLong, &type}, all{b, kLong, &type};
        for (int i = 0;; ++i) {
          if (i == last && member.me() == mortal) {
            dead_ = mortal;
            return;
          }
          const int kind = static_cast<int>(random() % 6);
          Error error;
          if (kind == 0) error = member.Barrier();
          if (kind == 1) error = member.Broadcast(mine, i % members);
          if (kind == 2) error = member.AllReduce(a, b, 1 + i % 2 * (kLong - 1), type, *Op::Find(MPI_SUM), {});
          if (kind == 3) error = member.Gather(mine, all, i % members);
          if (kind == 4) error = member.Scatter(all, mine, i % members);
          if (kind == 5) error = member.AllGather(mine, all);
          if (error.ok()) continue;
          ASSERT_EQ(error.mpi_class(), MPIX_ERR_PROC_FAILED) << error.message();
          ASSERT_GE(i, last);
          ASSERT_EQ(member.Barrier().mpi_class(), MPIX_ERR_PROC_FAILED);
          return;
        }
      });
    }
  }
}

}  // namespace
}  // namespace weft::mpi::coll
