// Members of a communicator on one host, each a thread, in random collectives of which each knows what it has to end
// with.
#include "mpi_hybrid/coll/host/member.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "mpi_hybrid/coll/testing/typed_buffer.h"

namespace weft::mpi::host {
namespace {

// Where each member is a thread, which yields. `dead`: a member that comes no more.
class Yielding final : public Waiter {
 public:
  explicit Yielding(const std::atomic<int>& dead) : dead_(dead) {}
  void set_member(Member* member) { member_ = member; }

  Error Until(Missing missing) override {
    for (int awaited = missing(); awaited >= 0; awaited = missing()) {
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
  Member* member_ = nullptr;
};

// All threads have the same memory.
class SameProcess final : public Reach {
 public:
  // `refuses`: a read that is refused, of so many; 0: none.
  SameProcess(int me, bool reaches, unsigned refuses) : reaches_(reaches), refuses_(refuses), random_(static_cast<unsigned>(me)) {}

  bool ReachesAll() override { return reaches_; }
  Outcome Read(int, uint64_t address, void* to, size_t bytes) override {
    const bool refused = refuses_ != 0 && random_() % refuses_ == 0;
    std::memcpy(to, reinterpret_cast<const void*>(address), refused ? bytes / 2 : bytes);
    ++reads_;
    return refused ? Outcome::kRefused : Outcome::kRead;
  }
  static inline std::atomic<uint64_t> reads_{0};

 private:
  const bool reaches_;
  const unsigned refuses_;
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
    std::vector<std::thread> threads;
    for (int i = 0; i < members; ++i) {
      threads.emplace_back([&, i] {
        Yielding waiter(dead_);
        SameProcess reach(i, i != cannot_reach_, refuses_);
        Member member(Memory(static_cast<uint8_t*>(base)), i, members, waiter, reach, seed % 2 == 0);
        waiter.set_member(&member);
        std::mt19937 random(seed);
        body(member, random);
        if (HasFailure()) dead_ = i;  // the others need not wait for it
      });
    }
    for (std::thread& thread : threads) thread.join();
    munmap(base, bytes);
  }

  std::atomic<int> dead_{-1};
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

// One random collective. Sizes around each of the limits.
void One(Member& member, std::mt19937& random) {
  const Datatype& type = *Datatype::Find(MPI_UINT32_T);
  const Op& sum = *Op::Find(MPI_SUM);
  const int n = member.members(), me = member.me();
  const unsigned salt = static_cast<unsigned>(random());
  const int root = static_cast<int>(random() % static_cast<unsigned>(n));
  const size_t kLimits[] = {0, kInline, 4096, kSlot, kArea / 2, kArea, 3 * kArea, Member::kInPlaceBeyondArea, Member::kInPlace};
  MPI_Aint count = static_cast<MPI_Aint>(kLimits[random() % std::size(kLimits)] / 4) + static_cast<int>(random() % 5) - 2;
  const unsigned kind = random() % 8;
  const bool in_place = random() % 2 == 0;
  if (kind > 3) count = std::min<MPI_Aint>(count, (kind == 5 ? member.MostScattered() : Member::kMostGathered) / 4);
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

TEST_F(Members, RandomCollectivesGiveWhatTheStandardSays) {
  const char* const more = std::getenv("MEMBER_SEEDS");
  const unsigned seeds = more != nullptr ? static_cast<unsigned>(std::atoi(more)) : 6;
  for (unsigned seed = 1; seed <= seeds; ++seed) {
    for (const int members : {2, 3, 4, 7, 11}) {
      Run(members, seed, [&](Member& member, std::mt19937& random) {
        for (int i = 0; i < 60 && !HasFatalFailure(); ++i) One(member, random);
      });
      ASSERT_FALSE(HasFailure()) << "seed " << seed << ", members " << members;
    }
  }
}

// Whoever may not read, from the start or at times, gets its data through the common memory, and the others with it.
TEST_F(Members, BlocksThatCannotBeReadWhereTheyLieComeAllTheSame) {
  const auto run = [&](unsigned seed) {
    for (const int members : {2, 3, 11}) {
      Run(members, seed, [&](Member& member, std::mt19937& random) {
        const Datatype& type = *Datatype::Find(MPI_UINT32_T);
        const int n = member.members(), me = member.me();
        for (int i = 0; i < 20; ++i) {
          const unsigned salt = static_cast<unsigned>(random());
          const size_t limits[] = {Member::kInPlaceBeyondArea, Member::kInPlace, kArea / static_cast<size_t>(n)};
          const MPI_Aint count = static_cast<MPI_Aint>(limits[random() % 3] / 4) + static_cast<int>(random() % 3) - 1;
          std::vector<uint32_t> given = Words(salt, me, count * n), got(given.size());
          ASSERT_EQ(member.AllToAll({given.data(), count, &type}, {got.data(), count, &type}).mpi_class(), MPI_SUCCESS);
          for (MPI_Aint k = 0; k < count * n; ++k) ASSERT_EQ(got[static_cast<size_t>(k)], Given(salt, static_cast<int>(k / count), me * count + k % count));
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
  for (const int members : {2, 4, 11}) {
    for (unsigned seed = 1; seed <= 4; ++seed) {
      dead_ = -1;
      Run(members, seed, [&](Member& member, std::mt19937& random) {
        const int mortal = static_cast<int>(random() % static_cast<unsigned>(members));
        const int last = static_cast<int>(random() % 20);
        const Datatype& type = *Datatype::Find(MPI_INT);
        std::vector<int> a(100'000), b(100'000);
        for (int i = 0;; ++i) {
          if (i == last && member.me() == mortal) {
            dead_ = mortal;
            return;
          }
          const int kind = static_cast<int>(random() % 3);
          Error error;
          if (kind == 0) error = member.Barrier();
          if (kind == 1) error = member.Broadcast({a.data(), 100'000, &type}, i % members);
          if (kind == 2) error = member.AllReduce(a.data(), b.data(), 1 + i % 2 * 99'999, type, *Op::Find(MPI_SUM), {});
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
}  // namespace weft::mpi::host
