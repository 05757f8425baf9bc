// Collectives between two groups, run for all processes in one thread.
#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/testing/in_memory_ranks.h"

namespace weft::mpi {
namespace {

using Numbers = std::vector<int>;

// Process `i` of both groups: ranks of the first, then those of the second.
struct Member {
  InterPlace place;
  bool first;
  int process;
};

class InterCollectives : public testing::Test {
 protected:
  template <typename Body>
  void ForEachSize(Body body) {
    for (int size = 1; size <= 6; ++size) {
      for (int remote = 1; remote <= 6; ++remote) {
        random_.seed(static_cast<unsigned>(size * 10 + remote));
        SCOPED_TRACE("groups of " + std::to_string(size) + " and " + std::to_string(remote));
        members_.clear();
        for (int rank = 0; rank < size; ++rank) members_.push_back({{{rank, size}, remote}, true, rank});
        for (int rank = 0; rank < remote; ++rank) members_.push_back({{{rank, remote}, size}, false, size + rank});
        body(size, remote);
        if (HasFailure()) return;
      }
    }
  }
  // Root argument of a member, when the root is rank `root` of the first group.
  static int RootOf(const Member& member, int root) {
    if (!member.first) return root;
    return member.place.local.rank == root ? MPI_ROOT : MPI_PROC_NULL;
  }
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  Numbers Random(MPI_Aint count) {
    Numbers result(static_cast<size_t>(count));
    for (int& number : result) number = Below(1000000);
    return result;
  }

  const Datatype& type_ = *Datatype::Find(MPI_INT);
  const Op& sum_ = *Op::Find(MPI_SUM);
  std::mt19937 random_;
  std::vector<Member> members_;
};

TEST_F(InterCollectives, BarrierNeedsBothGroups) {
  ForEachSize([&](int size, int remote) {
    InMemoryRanks all(random_, size, remote), one_group(random_, size, remote);
    for (const Member& member : members_) BuildInterBarrier(all[member.process], member.place);
    EXPECT_EQ(all.Run(), "");
    for (const Member& member : members_) {
      if (member.first) BuildInterBarrier(one_group[member.process], member.place);
    }
    EXPECT_NE(one_group.Run(), "");
    for (const Member& member : members_) {
      if (member.first) {
        EXPECT_FALSE(one_group.Finished(member.process));
      }
    }
  });
}

TEST_F(InterCollectives, BroadcastReachesTheOtherGroup) {
  ForEachSize([&](int size, int remote) {
    const int root = Below(size);
    const Numbers data = Random(7);
    std::vector<Numbers> buffers(members_.size(), Numbers(7));
    buffers[static_cast<size_t>(root)] = data;
    InMemoryRanks ranks(random_, size, remote);
    for (const Member& member : members_) {
      BuildInterBroadcast(ranks[member.process], member.place, buffers[static_cast<size_t>(member.process)].data(), 7,
                          type_, RootOf(member, root));
    }
    ASSERT_EQ(ranks.Run(), "");
    for (const Member& member : members_) {
      if (!member.first) {
        EXPECT_EQ(buffers[static_cast<size_t>(member.process)], data);
      }
    }
  });
}

TEST_F(InterCollectives, GatherAndScatterAreBetweenRootAndOtherGroup) {
  ForEachSize([&](int size, int remote) {
    const int root = Below(size);
    const Numbers data = Random(3 * remote);
    Numbers gathered(data.size()), gathered_v(data.size());
    std::vector<Numbers> sent(members_.size()), scattered(members_.size(), Numbers(3)), scattered_v = scattered;
    const std::vector<MPI_Aint> counts(static_cast<size_t>(remote), 3);
    std::vector<MPI_Aint> displacements(counts.size());
    for (size_t i = 0; i < counts.size(); ++i) displacements[i] = static_cast<MPI_Aint>(3 * i);
    InMemoryRanks gather(random_, size, remote), gather_v(random_, size, remote), scatter(random_, size, remote),
        scatter_v(random_, size, remote);
    for (const Member& member : members_) {
      const auto i = static_cast<size_t>(member.process);
      const int r = RootOf(member, root), process = member.process;
      if (!member.first)
        sent[i].assign(data.begin() + 3 * member.place.local.rank, data.begin() + 3 * member.place.local.rank + 3);
      BuildInterGather(gather[process], member.place, {sent[i].data(), 3, &type_}, {gathered.data(), 3, &type_}, r);
      BuildInterGatherV(gather_v[process], member.place, {sent[i].data(), 3, &type_},
                        {gathered_v.data(), counts, displacements, &type_, {}}, r);
      BuildInterScatter(scatter[process], member.place, {data.data(), 3, &type_}, {scattered[i].data(), 3, &type_}, r);
      BuildInterScatterV(scatter_v[process], member.place, {data.data(), counts, displacements, &type_, {}},
                         {scattered_v[i].data(), 3, &type_}, r);
    }
    for (InMemoryRanks* ranks : {&gather, &gather_v, &scatter, &scatter_v}) ASSERT_EQ(ranks->Run(), "");
    EXPECT_EQ(gathered, data);
    EXPECT_EQ(gathered_v, data);
    for (const Member& member : members_) {
      const auto i = static_cast<size_t>(member.process);
      if (!member.first) {
        EXPECT_EQ(scattered[i], sent[i]);
      }
      if (!member.first) {
        EXPECT_EQ(scattered_v[i], sent[i]);
      }
    }
  });
}

TEST_F(InterCollectives, AllGatherCollectsTheOtherGroupsBlocks) {
  ForEachSize([&](int size, int remote) {
    // Ranks of the first group send 2 numbers each, those of the second 3.
    const Numbers of_first = Random(2 * size), of_second = Random(3 * remote);
    std::vector<Numbers> results(members_.size()), results_v(members_.size());
    std::vector<std::vector<MPI_Aint>> counts(members_.size()), displacements(members_.size());
    InMemoryRanks plain(random_, size, remote), varying(random_, size, remote);
    for (const Member& member : members_) {
      const auto i = static_cast<size_t>(member.process);
      const int mine = member.first ? 2 : 3, theirs = 5 - mine;
      results[i].resize(static_cast<size_t>(theirs * member.place.remote_size));
      results_v[i] = results[i];
      counts[i].assign(static_cast<size_t>(member.place.remote_size), theirs);
      for (int rank = 0; rank < member.place.remote_size; ++rank) displacements[i].push_back(theirs * rank);
      const int* own = (member.first ? of_first : of_second).data() + mine * member.place.local.rank;
      BuildInterAllGather(plain[member.process], member.place, {own, mine, &type_},
                          {results[i].data(), theirs, &type_});
      BuildInterAllGatherV(varying[member.process], member.place, {own, mine, &type_},
                           {results_v[i].data(), counts[i], displacements[i], &type_, {}});
    }
    ASSERT_EQ(plain.Run(), "");
    ASSERT_EQ(varying.Run(), "");
    for (const Member& member : members_) {
      EXPECT_EQ(results[static_cast<size_t>(member.process)], member.first ? of_second : of_first);
      EXPECT_EQ(results_v[static_cast<size_t>(member.process)], member.first ? of_second : of_first);
    }
  });
}

TEST_F(InterCollectives, AllToAllTransposesBetweenGroups) {
  ForEachSize([&](int size, int remote) {
    std::vector<Numbers> sent, results(members_.size());
    InMemoryRanks ranks(random_, size, remote);
    for (const Member& member : members_) {
      const auto i = static_cast<size_t>(member.process);
      sent.push_back(Random(2 * member.place.remote_size));
      results[i].resize(sent[i].size());
      BuildInterAllToAll(ranks[member.process], member.place, {sent[i].data(), 2, &type_},
                         {results[i].data(), 2, &type_});
    }
    ASSERT_EQ(ranks.Run(), "");
    for (const Member& member : members_) {
      for (int rank = 0; rank < member.place.remote_size; ++rank) {
        const auto from = static_cast<size_t>(member.first ? size + rank : rank);
        for (int k = 0; k < 2; ++k) {
          EXPECT_EQ(results[static_cast<size_t>(member.process)][static_cast<size_t>(2 * rank + k)],
                    sent[from][static_cast<size_t>(2 * member.place.local.rank + k)]);
        }
      }
    }
  });
}

TEST_F(InterCollectives, ReductionsGiveTheOtherGroupsResult) {
  ForEachSize([&](int size, int remote) {
    const int root = Below(size);
    const int total = size * remote * 2;  // reduce-scatter: both groups divide the same vector
    std::vector<Numbers> sent;
    Numbers sums[2] = {Numbers(static_cast<size_t>(total)), Numbers(static_cast<size_t>(total))};
    for (const Member& member : members_) {
      sent.push_back(Random(total));
      for (size_t k = 0; k < sent.back().size(); ++k) sums[member.first ? 0 : 1][k] += sent.back()[k];
    }
    Numbers reduced(static_cast<size_t>(total));
    std::vector<Numbers> all(members_.size(), reduced), pieces(members_.size());
    std::vector<std::vector<MPI_Aint>> counts(members_.size());
    InMemoryRanks reduce(random_, size, remote), all_reduce(random_, size, remote), scatter(random_, size, remote);
    for (const Member& member : members_) {
      const auto i = static_cast<size_t>(member.process);
      const int own = total / member.place.local.size;
      pieces[i].resize(static_cast<size_t>(own));
      counts[i].assign(static_cast<size_t>(member.place.local.size), own);
      BuildInterReduce(reduce[member.process], member.place, {sent[i].data(), reduced.data(), total, &type_, &sum_},
                       RootOf(member, root));
      BuildInterAllReduce(all_reduce[member.process], member.place,
                          {sent[i].data(), all[i].data(), total, &type_, &sum_});
      BuildInterReduceScatter(scatter[member.process], member.place,
                              {sent[i].data(), pieces[i].data(), 0, &type_, &sum_}, counts[i]);
    }
    for (InMemoryRanks* ranks : {&reduce, &all_reduce, &scatter}) ASSERT_EQ(ranks->Run(), "");
    EXPECT_EQ(reduced, sums[1]);
    for (const Member& member : members_) {
      const auto i = static_cast<size_t>(member.process);
      const Numbers& expected = sums[member.first ? 1 : 0];
      EXPECT_EQ(all[i], expected);
      const auto begin = expected.begin() + member.place.local.rank * static_cast<ptrdiff_t>(pieces[i].size());
      EXPECT_EQ(pieces[i], Numbers(begin, begin + static_cast<ptrdiff_t>(pieces[i].size())));
    }
  });
}

}  // namespace
}  // namespace weft::mpi
