// Collectives by hosts, run for all ranks in one process: what they give, how many messages go between hosts, and that reductions have the same
// bits as by ranks alone where KeepsResult says so.
#include "mpi_hybrid/coll/two_levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/coll/testing/in_memory_ranks.h"
#include "mpi_hybrid/coll/tuning.h"

namespace weft::mpi {
namespace {

constexpr int kMostRanks = 17;

class TwoLevelsTest : public testing::Test {
 protected:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }

  // `body(size)`, with hosts_ and levels_ of so many ranks, spread at random.
  template <typename Body>
  void ForEachLayout(Body body) {
    for (unsigned seed = 1; seed <= 20; ++seed) {
      for (int size = 2; size <= kMostRanks; ++size) {
        random_.seed(seed * 100 + static_cast<unsigned>(size));
        std::vector<int> hosts;
        const int most = 1 + Below(size);
        for (int rank = 0; rank < size; ++rank) hosts.push_back(7 * Below(most));
        Layout(hosts);
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(size) + " ranks");
        body(size);
        if (HasFailure()) return;
      }
    }
  }
  void Layout(const std::vector<int>& hosts) {
    hosts_ = hosts;
    levels_.clear();
    for (size_t rank = 0; rank < hosts.size(); ++rank) levels_.emplace_back(static_cast<int>(rank), hosts);
  }
  // Blocks of ranks on each host.
  void LayoutBlocks(int hosts, int each) {
    std::vector<int> of;
    for (int rank = 0; rank < hosts * each; ++rank) of.push_back(rank / each);
    Layout(of);
  }
  const TwoLevels& at(int rank) { return levels_[static_cast<size_t>(rank)]; }

  // Messages that the schedule sends to other hosts.
  int MessagesToOtherHosts(InMemoryRanks& ranks, int rank) {
    int count = 0;
    for (const Step& step : ranks[rank].steps()) {
      count += step.kind == Step::Kind::kSend && hosts_[static_cast<size_t>(step.peer)] != hosts_[static_cast<size_t>(rank)];
    }
    return count;
  }

  std::mt19937 random_;
  std::vector<int> hosts_;
  std::deque<TwoLevels> levels_;
};

TEST_F(TwoLevelsTest, ExistWhereSomeHostHasSeveralRanksAndThereAreSeveralHosts) {
  const auto exist = [](const std::vector<int>& hosts) { return TwoLevels(0, hosts).exists(); };
  EXPECT_FALSE(exist({3}));
  EXPECT_FALSE(exist({3, 3, 3}));
  EXPECT_FALSE(exist({0, 1, 2}));
  EXPECT_TRUE(exist({0, 0, 1}));
  EXPECT_TRUE(exist({0, 1, 0, 1}));
}

TEST_F(TwoLevelsTest, BarrierLetsNobodyOutBeforeTheLastIsIn) {
  ForEachLayout([&](int size) {
    const int late = Below(size);
    InMemoryRanks ranks(random_, size), without(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      at(rank).BuildBarrier(ranks[rank]);
      if (rank != late) at(rank).BuildBarrier(without[rank]);
    }
    EXPECT_EQ(ranks.Run(), "");
    EXPECT_NE(without.Run(), "");
    for (int rank = 0; rank < size; ++rank) {
      if (rank != late) EXPECT_FALSE(without.Finished(rank)) << rank;
    }
  });
}

TEST_F(TwoLevelsTest, BroadcastGivesAllTheDataOfTheRoot) {
  ForEachLayout([&](int size) {
    const int root = Below(size);
    const MPI_Aint bytes = Below(3) == 0 ? Below(3) : Below(5000);
    std::vector<std::vector<uint8_t>> data(static_cast<size_t>(size));
    InMemoryRanks ranks(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      auto& mine = data[static_cast<size_t>(rank)];
      mine.resize(static_cast<size_t>(bytes));
      for (uint8_t& byte : mine) byte = static_cast<uint8_t>(random_());
      at(rank).BuildBroadcast(ranks[rank], mine.data(), bytes, *Datatype::Find(MPI_BYTE), root);
    }
    const std::vector<uint8_t> expected = data[static_cast<size_t>(root)];
    ASSERT_EQ(ranks.Run(), "");
    for (int rank = 0; rank < size; ++rank) ASSERT_EQ(data[static_cast<size_t>(rank)], expected) << rank;
  });
}

TEST_F(TwoLevelsTest, ReductionsOfExactOperationsAreRightWhateverTheHosts) {
  ForEachLayout([&](int size) {
    const Op& op = *Op::Find(MPI_SUM);
    const Datatype& type = *Datatype::Find(MPI_UINT32_T);
    const int root = Below(size);
    const MPI_Aint count = Below(40);
    const bool in_place = Below(2) == 0;
    ASSERT_TRUE(at(0).KeepsResult(op, type, count * type.size));
    using Vector = std::vector<uint32_t>;
    std::vector<Vector> inputs(static_cast<size_t>(size), Vector(static_cast<size_t>(count)));
    Vector expected(static_cast<size_t>(count));
    for (Vector& input : inputs) {
      for (size_t i = 0; i < input.size(); ++i) expected[i] += input[i] = random_();
    }
    const auto before = inputs;
    for (const bool to_all : {false, true}) {
      std::vector<Vector> results(static_cast<size_t>(size), Vector(static_cast<size_t>(count), 99));
      InMemoryRanks ranks(random_, size);
      for (int rank = 0; rank < size; ++rank) {
        const bool gets = to_all || rank == root;
        Vector& result = results[static_cast<size_t>(rank)];
        if (in_place && gets) result = inputs[static_cast<size_t>(rank)];
        const void* send = in_place && gets ? result.data() : inputs[static_cast<size_t>(rank)].data();
        const Reduction reduction{send, gets ? result.data() : nullptr, count, &type, &op};
        to_all ? at(rank).BuildAllReduce(ranks[rank], reduction) : at(rank).BuildReduce(ranks[rank], reduction, root);
      }
      ASSERT_EQ(ranks.Run(), "");
      for (int rank = 0; rank < size; ++rank) {
        if (to_all || rank == root) ASSERT_EQ(results[static_cast<size_t>(rank)], expected) << rank;
      }
      ASSERT_EQ(inputs, before);
    }
  });
}

TEST_F(TwoLevelsTest, SumsOfFloatingPointHaveTheSameBitsAsByRanksAlone) {
  const Op& op = *Op::Find(MPI_SUM);
  const Datatype& type = *Datatype::Find(MPI_DOUBLE);
  for (const auto& [hosts, each] : {std::pair{2, 2}, {2, 4}, {4, 2}, {4, 4}, {2, 8}}) {
    LayoutBlocks(hosts, each);
    const int size = hosts * each;
    for (const int root : {0, each, size - each, size - 1}) {
      SCOPED_TRACE(std::to_string(hosts) + " hosts, " + std::to_string(each) + " ranks on each, to " + std::to_string(root));
      constexpr MPI_Aint kCount = 50;
      ASSERT_TRUE(at(0).KeepsResult(op, type, kCount * type.size));
      ASSERT_EQ(at(0).KeepsResult(op, type, kCount * type.size, root), root % each == 0);
      using Vector = std::vector<double>;
      std::vector<Vector> inputs(static_cast<size_t>(size), Vector(kCount));
      for (Vector& input : inputs) {
        for (double& value : input) value = std::ldexp(static_cast<double>(random_()) + 0.1, Below(60) - 30);
      }
      for (const bool to_all : {false, true}) {
        if (!to_all && root % each != 0) continue;
        std::vector<Vector> by_hosts(static_cast<size_t>(size), Vector(kCount)), by_ranks = by_hosts;
        InMemoryRanks two(random_, size), one(random_, size);
        for (int rank = 0; rank < size; ++rank) {
          const auto of = static_cast<size_t>(rank);
          const Reduction first{inputs[of].data(), by_hosts[of].data(), kCount, &type, &op};
          const Reduction second{inputs[of].data(), by_ranks[of].data(), kCount, &type, &op};
          if (to_all) {
            at(rank).BuildAllReduce(two[rank], first);
            BuildAllReduce(one[rank], {rank, size}, Choose(Collective::kAllReduce, kCount * type.size, size), second);
          } else {
            at(rank).BuildReduce(two[rank], first, root);
            BuildReduce(one[rank], {rank, size}, Choose(Collective::kReduce, kCount * type.size, size), second, root);
          }
        }
        ASSERT_EQ(two.Run(), "");
        ASSERT_EQ(one.Run(), "");
        for (int rank = 0; rank < size; ++rank) {
          if (!to_all && rank != root) continue;
          const auto of = static_cast<size_t>(rank);
          ASSERT_EQ(std::memcmp(by_hosts[of].data(), by_ranks[of].data(), kCount * sizeof(double)), 0) << "rank " << rank;
        }
      }
    }
  }
}

TEST_F(TwoLevelsTest, ScatteredReductionsAreRightWhateverTheHosts) {
  ForEachLayout([&](int size) {
    const Op& op = *Op::Find(MPI_SUM);
    const Datatype& type = *Datatype::Find(MPI_UINT32_T);
    std::vector<MPI_Aint> counts;
    for (int rank = 0; rank < size; ++rank) counts.push_back(Below(5));
    const auto total = static_cast<size_t>(std::accumulate(counts.begin(), counts.end(), MPI_Aint{0}));
    const bool in_place = Below(2) == 0;
    ASSERT_TRUE(at(0).KeepsScattered(op, type, static_cast<MPI_Aint>(total) * type.size));
    using Vector = std::vector<uint32_t>;
    std::vector<Vector> inputs(static_cast<size_t>(size), Vector(total)), results(static_cast<size_t>(size), Vector(total, 99));
    Vector expected(total);
    for (Vector& input : inputs) {
      for (size_t i = 0; i < total; ++i) expected[i] += input[i] = random_();
    }
    InMemoryRanks ranks(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      Vector& result = results[static_cast<size_t>(rank)];
      if (in_place) result = inputs[static_cast<size_t>(rank)];
      const void* send = in_place ? result.data() : inputs[static_cast<size_t>(rank)].data();
      at(rank).BuildReduceScatter(ranks[rank], {send, result.data(), 0, &type, &op}, counts);
    }
    ASSERT_EQ(ranks.Run(), "");
    auto piece = expected.begin();
    for (int rank = 0; rank < size; ++rank) {
      const MPI_Aint count = counts[static_cast<size_t>(rank)];
      ASSERT_TRUE(std::equal(piece, piece + count, results[static_cast<size_t>(rank)].begin())) << rank;
      piece += count;
    }
  });
}

TEST_F(TwoLevelsTest, ScatteredSumsOfFloatingPointHaveTheSameBitsAsByRanksAlone) {
  const Op& op = *Op::Find(MPI_SUM);
  const Datatype& type = *Datatype::Find(MPI_DOUBLE);
  for (const auto& [hosts, each] : {std::pair{4, 4}, {2, 8}, {8, 2}}) {
    LayoutBlocks(hosts, each);
    const int size = hosts * each;
    const std::vector<MPI_Aint> counts(static_cast<size_t>(size), 3);
    const MPI_Aint bytes = 3 * size * type.size;
    ASSERT_TRUE(at(0).KeepsScattered(op, type, bytes));
    using Vector = std::vector<double>;
    std::vector<Vector> inputs(static_cast<size_t>(size), Vector(static_cast<size_t>(3 * size))), by_hosts(inputs.size(), Vector(3)), by_ranks = by_hosts;
    for (Vector& input : inputs) {
      for (double& value : input) value = std::ldexp(static_cast<double>(random_()) + 0.1, Below(60) - 30);
    }
    InMemoryRanks two(random_, size), one(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      const auto of = static_cast<size_t>(rank);
      at(rank).BuildReduceScatter(two[rank], {inputs[of].data(), by_hosts[of].data(), 0, &type, &op}, counts);
      BuildReduceScatter(one[rank], {rank, size}, Choose(Collective::kReduceScatter, bytes, size), {inputs[of].data(), by_ranks[of].data(), 0, &type, &op},
                         counts);
    }
    ASSERT_EQ(two.Run(), "");
    ASSERT_EQ(one.Run(), "");
    for (size_t of = 0; of < inputs.size(); ++of) ASSERT_EQ(std::memcmp(by_hosts[of].data(), by_ranks[of].data(), 3 * sizeof(double)), 0) << of;
  }
}

TEST_F(TwoLevelsTest, OtherLayoutsKeepTheOrderOfFloatingPointByRanksAlone) {
  const Op& op = *Op::Find(MPI_SUM);
  const Datatype& type = *Datatype::Find(MPI_DOUBLE);
  for (const auto& hosts : {std::vector<int>{0, 1, 0, 1}, {0, 0, 0, 1, 1, 1}, {0, 0, 1, 1, 2, 2}, {0, 0, 0, 1}, {0, 0, 1}}) {
    Layout(hosts);
    EXPECT_FALSE(at(0).KeepsResult(op, type, 8));
    EXPECT_FALSE(at(0).KeepsResult(op, type, 8, 0));
    EXPECT_TRUE(at(0).KeepsResult(*Op::Find(MPI_BOR), *Datatype::Find(MPI_UNSIGNED), 8));
  }
}

TEST_F(TwoLevelsTest, OneRankOfEachHostSpeaksToOthers) {
  LayoutBlocks(4, 8);
  InMemoryRanks barrier(random_, 32), broadcast(random_, 32), all_gather(random_, 32), all_to_all(random_, 32), gather(random_, 32);
  std::vector<double> data(32), more(32);
  const Datatype& type = *Datatype::Find(MPI_DOUBLE);
  int in_barrier = 0, in_broadcast = 0, in_all_gather = 0, in_all_to_all = 0, in_gather = 0;
  for (int rank = 0; rank < 32; ++rank) {
    at(rank).BuildBarrier(barrier[rank]);
    at(rank).BuildBroadcast(broadcast[rank], data.data(), 10, *Datatype::Find(MPI_DOUBLE), 13);
    in_barrier += MessagesToOtherHosts(barrier, rank);
    in_broadcast += MessagesToOtherHosts(broadcast, rank);
    at(rank).BuildAllGather(all_gather[rank], {more.data(), 1, &type}, {data.data(), 1, &type});
    in_all_gather += MessagesToOtherHosts(all_gather, rank);
    at(rank).BuildAllToAll(all_to_all[rank], {more.data(), 1, &type}, {data.data(), 1, &type});
    in_all_to_all += MessagesToOtherHosts(all_to_all, rank);
    at(rank).BuildGather(gather[rank], {more.data(), 1, &type}, {data.data(), 1, &type}, 13);
    in_gather += MessagesToOtherHosts(gather, rank);
  }
  EXPECT_EQ(in_barrier, 4 * 2);
  EXPECT_EQ(in_broadcast, 3);
  EXPECT_EQ(in_all_gather, 4 * 2);
  EXPECT_EQ(in_all_to_all, 4 * 2);
  EXPECT_EQ(in_gather, 3);
}

}  // namespace
}  // namespace weft::mpi
