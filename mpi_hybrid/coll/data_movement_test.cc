// Algorithms that move data, run for all ranks in one process and compared with what the standard says each rank ends
// with.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/testing/in_memory_ranks.h"
#include "mpi_hybrid/coll/testing/typed_buffer.h"
#include "mpi_hybrid/coll/two_levels.h"

namespace weft::mpi {
namespace {

constexpr int kMostRanks = 17;

class DataMovement : public testing::Test {
 protected:
  // Runs `body(size)` with a fresh seed for each number of ranks, several times.
  template <typename Body>
  void ForEachSize(Body body) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
      for (int size = 1; size <= kMostRanks; ++size) {
        random_.seed(seed * 100 + static_cast<unsigned>(size));
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(size) + " ranks");
        body(size);
        if (HasFailure()) return;
      }
    }
  }

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  MPI_Aint SomeCount() { return Below(4) == 0 ? Below(2) : Below(40); }
  const Datatype& SomeLayout() { return LayoutOfThree(random_() % 4); }

  // Runs everything twice, as a persistent collective is, and compares. `reset` puts the buffers to their state before.
  template <typename Reset>
  void RunAndCompare(InMemoryRanks& ranks, std::deque<TypedBuffer>& buffers, const std::deque<TypedBuffer>& expected,
                     Reset reset) {
    for (int run = 0; run < 2; ++run) {
      reset();
      ASSERT_EQ(ranks.Run(), "");
      for (size_t i = 0; i < buffers.size(); ++i)
        ASSERT_TRUE(buffers[i] == expected[i]) << "rank " << i << " in run " << run;
    }
  }

  // An algorithm by ranks alone, or by hosts (two_levels.h).
  struct Way {
    Algorithm algorithm = Algorithm::kAutomatic;
    bool by_hosts = false;
  };
  static std::vector<Way> WaysOf(std::initializer_list<Algorithm> algorithms) {
    std::vector<Way> ways;
    for (const Algorithm algorithm : algorithms) ways.push_back({algorithm});
    ways.push_back({.by_hosts = true});
    return ways;
  }
  // Spreads the ranks over hosts if the way needs them: at random, or in blocks of as many. False: there is none of that way.
  bool MayGo(Way way, Collective collective, int size) {
    if (!way.by_hosts) return IsLegal(collective, way.algorithm, size, true);
    const int most = 1 + Below(size);
    const bool in_blocks = Below(2) == 0;
    std::vector<int> hosts;
    for (int rank = 0; rank < size; ++rank) hosts.push_back(in_blocks ? rank / most : 5 * Below(most));
    levels_.clear();
    for (int rank = 0; rank < size; ++rank) levels_.emplace_back(rank, hosts);
    return levels_.front().exists();
  }
  const TwoLevels& at(int rank) { return levels_[static_cast<size_t>(rank)]; }

  std::mt19937 random_;
  std::deque<TwoLevels> levels_;
};

// Pieces of `elements` elements of packed data.
Bytes Piece(const Bytes& data, MPI_Aint first, MPI_Aint elements) {
  return Bytes(data.begin() + first * kElementBytes, data.begin() + (first + elements) * kElementBytes);
}

TEST_F(DataMovement, BroadcastGivesEveryRankTheRootsData) {
  for (Algorithm algorithm : {Algorithm::kBinomial, Algorithm::kScatterDoubling, Algorithm::kScatterRing}) {
    ForEachSize([&](int size) {
      if (!IsLegal(Collective::kBroadcast, algorithm, size, true)) return;
      const int root = Below(size);
      const MPI_Aint count = SomeCount();
      const Bytes data = RandomBytes(random_, count);
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> buffers, expected;
      for (int rank = 0; rank < size; ++rank) {
        const Datatype& type = SomeLayout();
        expected.emplace_back(type, count).Put(0, data);
        TypedBuffer& buffer = buffers.emplace_back(type, count);
        BuildBroadcast(ranks[rank], {rank, size}, algorithm, buffer.origin(), count, type, root);
      }
      RunAndCompare(ranks, buffers, expected, [&] {
        for (int rank = 0; rank < size; ++rank)
          buffers[static_cast<size_t>(rank)].Put(0, rank == root ? data : Bytes(data.size(), 0));
      });
    });
  }
}

TEST_F(DataMovement, BarrierLetsNobodyOutBeforeTheLastIsIn) {
  ForEachSize([&](int size) {
    // One rank never enters: nobody may finish. (A rank that waits stands before the end of its steps.)
    const int late = Below(size);
    InMemoryRanks ranks(random_, size);
    for (int rank = 0; rank < size; ++rank) BuildBarrier(ranks[rank], {rank, size});
    EXPECT_EQ(ranks.Run(), "");
    if (size == 1) return;
    InMemoryRanks without(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      if (rank != late) BuildBarrier(without[rank], {rank, size});
    }
    EXPECT_NE(without.Run(), "");
    for (int rank = 0; rank < size; ++rank) {
      if (rank != late) {
        EXPECT_FALSE(without.Finished(rank)) << rank;
      }
    }
  });
}

TEST_F(DataMovement, GatherPutsBlocksInTheOrderOfRanks) {
  for (const Way way : WaysOf({Algorithm::kBinomial, Algorithm::kLinear})) {
    ForEachSize([&](int size) {
      if (!MayGo(way, Collective::kGather, size)) return;
      const int root = Below(size);
      const MPI_Aint count = SomeCount();
      const bool in_place = Below(2) == 0;
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, result, expected;
      const Datatype& type = SomeLayout();
      result.emplace_back(type, count * size);
      expected.emplace_back(type, count * size);
      Bytes own;
      for (int rank = 0; rank < size; ++rank) {
        const Bytes data = RandomBytes(random_, count);
        TypedBuffer& send = sends.emplace_back(SomeLayout(), count);
        send.Put(0, data);
        expected[0].Put(rank * count, data);
        if (rank == root) own = data;
        const bool here = rank == root;
        const Uniform from{here && in_place ? MPI_IN_PLACE : send.origin(), count, &send.type()};
        const Uniform to{here ? result[0].origin() : nullptr, count, here ? &type : nullptr};
        if (way.by_hosts) {
          at(rank).BuildGather(ranks[rank], from, to, root);
        } else {
          BuildGather(ranks[rank], {rank, size}, way.algorithm, from, to, root);
        }
      }
      RunAndCompare(ranks, result, expected, [&] {
        result[0].Clear();
        if (in_place) result[0].Put(root * count, own);
      });
    });
  }
}

TEST_F(DataMovement, ScatterGivesEachRankItsBlock) {
  for (const Way way : WaysOf({Algorithm::kBinomial, Algorithm::kLinear})) {
    ForEachSize([&](int size) {
      if (!MayGo(way, Collective::kScatter, size)) return;
      const int root = Below(size);
      const MPI_Aint count = SomeCount();
      const bool in_place = Below(2) == 0;
      const Bytes data = RandomBytes(random_, count * size);
      const Datatype& type = SomeLayout();
      TypedBuffer send(type, count * size);
      send.Put(0, data);
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> buffers, expected;
      for (int rank = 0; rank < size; ++rank) {
        const bool here = rank == root;
        TypedBuffer& buffer = buffers.emplace_back(SomeLayout(), count);
        expected.push_back(buffer);
        if (!here || !in_place) expected.back().Put(0, Piece(data, rank * count, count));
        const Uniform from{here ? send.origin() : nullptr, count, here ? &type : nullptr};
        const Uniform to{here && in_place ? MPI_IN_PLACE : buffer.origin(), count, &buffer.type()};
        if (way.by_hosts) {
          at(rank).BuildScatter(ranks[rank], from, to, root);
        } else {
          BuildScatter(ranks[rank], {rank, size}, way.algorithm, from, to, root);
        }
      }
      RunAndCompare(ranks, buffers, expected, [] {});
    });
  }
}

// Counts and displacements with gaps, in an order of blocks that is not that of ranks.
struct Layout {
  std::vector<MPI_Aint> counts, displacements;
  MPI_Aint room = 0;
};
Layout SomeBlocks(std::mt19937& random, std::vector<MPI_Aint> counts) {
  Layout layout{std::move(counts), {}, 0};
  layout.displacements.resize(layout.counts.size());
  std::vector<size_t> order(layout.counts.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  for (size_t i : order) {
    layout.room += static_cast<MPI_Aint>(random() % 3);
    layout.displacements[i] = layout.room;
    layout.room += layout.counts[i];
  }
  return layout;
}

TEST_F(DataMovement, GatherVAndScatterVUseCountsAndDisplacements) {
  ForEachSize([&](int size) {
    const int root = Below(size);
    std::vector<MPI_Aint> counts(static_cast<size_t>(size));
    for (MPI_Aint& count : counts) count = SomeCount();
    const Layout layout = SomeBlocks(random_, counts);
    const Datatype& type = SomeLayout();
    std::deque<TypedBuffer> result, expected, sends, back, expected_back;
    result.emplace_back(type, layout.room);
    expected.emplace_back(type, layout.room);
    InMemoryRanks gather(random_, size), scatter(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      const auto index = static_cast<size_t>(rank);
      const Bytes data = RandomBytes(random_, counts[index]);
      sends.emplace_back(SomeLayout(), counts[index]).Put(0, data);
      expected[0].Put(layout.displacements[index], data);
      back.emplace_back(SomeLayout(), counts[index]);
      expected_back.push_back(back.back());
      expected_back.back().Put(0, data);
      const Varying all =
          rank == root ? Varying{result[0].origin(), layout.counts, layout.displacements, &type, {}} : Varying{};
      BuildGatherV(gather[rank], {rank, size}, {sends.back().origin(), counts[index], &sends.back().type()}, all, root);
      BuildScatterV(scatter[rank], {rank, size}, all, {back.back().origin(), counts[index], &back.back().type()}, root);
    }
    RunAndCompare(gather, result, expected, [&] { result[0].Clear(); });
    RunAndCompare(scatter, back, expected_back, [] {});
  });
}

TEST_F(DataMovement, AllGatherGivesEveryRankEveryBlock) {
  for (const Way way : WaysOf({Algorithm::kDoubling, Algorithm::kBruck, Algorithm::kRing})) {
    ForEachSize([&](int size) {
      if (!MayGo(way, Collective::kAllGather, size)) return;
      const MPI_Aint count = SomeCount();
      const Bytes data = RandomBytes(random_, count * size);
      const bool in_place = Below(2) == 0;
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, buffers, expected;
      for (int rank = 0; rank < size; ++rank) {
        const Datatype& type = SomeLayout();
        expected.emplace_back(type, count * size).Put(0, data);
        buffers.emplace_back(type, count * size);
        TypedBuffer& send = sends.emplace_back(SomeLayout(), count);
        send.Put(0, Piece(data, rank * count, count));
        const Uniform from{in_place ? MPI_IN_PLACE : send.origin(), count, &send.type()};
        const Uniform to{buffers.back().origin(), count, &type};
        if (way.by_hosts) {
          at(rank).BuildAllGather(ranks[rank], from, to);
        } else {
          BuildAllGather(ranks[rank], {rank, size}, way.algorithm, from, to);
        }
      }
      RunAndCompare(ranks, buffers, expected, [&] {
        for (int rank = 0; rank < size; ++rank) {
          TypedBuffer& buffer = buffers[static_cast<size_t>(rank)];
          buffer.Clear();
          if (in_place) buffer.Put(rank * count, Piece(data, rank * count, count));
        }
      });
    });
  }
}

TEST_F(DataMovement, AllGatherVUsesEachRanksOwnDisplacements) {
  for (Algorithm algorithm : {Algorithm::kBruck, Algorithm::kRing}) {
    ForEachSize([&](int size) {
      std::vector<MPI_Aint> counts(static_cast<size_t>(size));
      for (MPI_Aint& count : counts) count = SomeCount();
      std::vector<Bytes> data;
      for (MPI_Aint count : counts) data.push_back(RandomBytes(random_, count));
      const bool in_place = Below(2) == 0;
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, buffers, expected, before;
      std::deque<Layout> layouts;
      for (int rank = 0; rank < size; ++rank) {
        const auto index = static_cast<size_t>(rank);
        const Layout& layout = layouts.emplace_back(SomeBlocks(random_, counts));
        const Datatype& type = SomeLayout();
        TypedBuffer& buffer = buffers.emplace_back(type, layout.room);
        before.push_back(buffer);
        expected.push_back(buffer);
        if (in_place) before.back().Put(layout.displacements[index], data[index]);
        for (size_t i = 0; i < counts.size(); ++i) expected.back().Put(layout.displacements[i], data[i]);
        TypedBuffer& send = sends.emplace_back(SomeLayout(), counts[index]);
        send.Put(0, data[index]);
        BuildAllGatherV(ranks[rank], {rank, size}, algorithm,
                        {in_place ? MPI_IN_PLACE : send.origin(), counts[index], &send.type()},
                        {buffer.origin(), layout.counts, layout.displacements, &type, {}});
      }
      RunAndCompare(ranks, buffers, expected, [&] {
        for (size_t i = 0; i < buffers.size(); ++i) buffers[i] = before[i];
      });
    });
  }
}

TEST_F(DataMovement, AllToAllTransposesBlocks) {
  for (const Way way : WaysOf({Algorithm::kBruck, Algorithm::kLinear, Algorithm::kPairwise})) {
    ForEachSize([&](int size) {
      if (!MayGo(way, Collective::kAllToAll, size)) return;
      const MPI_Aint count = SomeCount();
      const bool in_place = Below(2) == 0;
      std::vector<Bytes> data;
      for (int rank = 0; rank < size; ++rank) data.push_back(RandomBytes(random_, count * size));
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, buffers, expected;
      for (int rank = 0; rank < size; ++rank) {
        const Datatype& type = SomeLayout();
        buffers.emplace_back(type, count * size);
        TypedBuffer& result = expected.emplace_back(type, count * size);
        for (int from = 0; from < size; ++from)
          result.Put(from * count, Piece(data[static_cast<size_t>(from)], rank * count, count));
        TypedBuffer& send = sends.emplace_back(SomeLayout(), count * size);
        send.Put(0, data[static_cast<size_t>(rank)]);
        const Uniform from{in_place ? MPI_IN_PLACE : send.origin(), count, &send.type()};
        const Uniform to{buffers.back().origin(), count, &type};
        if (way.by_hosts) {
          at(rank).BuildAllToAll(ranks[rank], from, to);
        } else {
          BuildAllToAll(ranks[rank], {rank, size}, way.algorithm, from, to);
        }
      }
      RunAndCompare(ranks, buffers, expected, [&] {
        for (size_t i = 0; i < buffers.size(); ++i) {
          buffers[i].Clear();
          if (in_place) buffers[i].Put(0, data[i]);
        }
      });
    });
  }
}

// counts[i][j]: from rank i to rank j.
using CountMatrix = std::vector<std::vector<MPI_Aint>>;
std::vector<MPI_Aint> Column(const CountMatrix& counts, size_t column) {
  std::vector<MPI_Aint> result;
  for (const auto& row : counts) result.push_back(row[column]);
  return result;
}

TEST_F(DataMovement, AllToAllVMovesBlocksOfAnySize) {
  ForEachSize([&](int size) {
    const auto n = static_cast<size_t>(size);
    const bool in_place = Below(3) == 0;
    CountMatrix counts(n, std::vector<MPI_Aint>(n));
    std::vector<std::vector<Bytes>> data(n, std::vector<Bytes>(n));
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        counts[i][j] = in_place && j < i ? counts[j][i] : SomeCount();
        data[i][j] = RandomBytes(random_, counts[i][j]);
      }
    }
    InMemoryRanks ranks(random_, size);
    std::deque<TypedBuffer> sends, buffers, expected, before;
    std::deque<Layout> layouts;
    for (size_t rank = 0; rank < n; ++rank) {
      const Layout& outgoing = layouts.emplace_back(SomeBlocks(random_, counts[rank]));
      const Layout& incoming = layouts.emplace_back(SomeBlocks(random_, Column(counts, rank)));
      const Datatype& type = SomeLayout();
      TypedBuffer& buffer = buffers.emplace_back(type, incoming.room);
      before.push_back(buffer);
      expected.push_back(buffer);
      TypedBuffer& send = sends.emplace_back(SomeLayout(), outgoing.room);
      for (size_t i = 0; i < n; ++i) {
        send.Put(outgoing.displacements[i], data[rank][i]);
        if (in_place) before.back().Put(incoming.displacements[i], data[rank][i]);
        expected.back().Put(incoming.displacements[i], data[i][rank]);
      }
      BuildAllToAllV(
          ranks[static_cast<int>(rank)], {static_cast<int>(rank), size},
          {in_place ? MPI_IN_PLACE : send.origin(), outgoing.counts, outgoing.displacements, &send.type(), {}},
          {buffer.origin(), incoming.counts, incoming.displacements, &type, {}});
    }
    RunAndCompare(ranks, buffers, expected, [&] {
      for (size_t i = 0; i < n; ++i) buffers[i] = before[i];
    });
  });
}

TEST_F(DataMovement, AllToAllWHasATypePerRankAndDisplacementsInBytes) {
  ForEachSize([&](int size) {
    const auto n = static_cast<size_t>(size);
    std::vector<std::vector<Bytes>> data(n);
    for (auto& row : data) {
      for (int i = 0; i < size; ++i) row.push_back(RandomBytes(random_, 2));
    }
    // Two elements per block, each block 80 bytes.
    InMemoryRanks ranks(random_, size);
    const Datatype& bytes = *Datatype::Find(MPI_BYTE);
    std::deque<TypedBuffer> sends, buffers, expected;
    std::deque<std::vector<const Datatype*>> types;
    const std::vector<MPI_Aint> counts(n, 2);
    std::vector<MPI_Aint> displacements(n);
    for (size_t i = 0; i < n; ++i) displacements[i] = static_cast<MPI_Aint>(i) * 80;
    auto put = [](TypedBuffer& buffer, size_t block, const Datatype& type, const Bytes& what) {
      TypeCursor cursor(static_cast<uint8_t*>(buffer.origin()) + block * 80, 2, type);
      Unpack(cursor, what);
    };
    for (size_t rank = 0; rank < n; ++rank) {
      auto& outgoing = types.emplace_back();
      auto& incoming = types.emplace_back();
      TypedBuffer& send = sends.emplace_back(bytes, 80 * size);
      buffers.emplace_back(bytes, 80 * size);
      TypedBuffer& result = expected.emplace_back(bytes, 80 * size);
      for (size_t i = 0; i < n; ++i) {
        outgoing.push_back(&SomeLayout());
        incoming.push_back(&SomeLayout());
        put(send, i, *outgoing[i], data[rank][i]);
        put(result, i, *incoming[i], data[i][rank]);
      }
      BuildAllToAllV(ranks[static_cast<int>(rank)], {static_cast<int>(rank), size},
                     {send.origin(), counts, displacements, nullptr, outgoing},
                     {buffers.back().origin(), counts, displacements, nullptr, incoming});
    }
    RunAndCompare(ranks, buffers, expected, [] {});
  });
}

TEST_F(DataMovement, NeighborsExchangeOverARandomGraph) {
  ForEachSize([&](int size) {
    const auto n = static_cast<size_t>(size);
    // Edges with repetitions and loops; of several edges between two ranks the k-th out is the k-th in.
    std::vector<std::vector<int>> sources(n), destinations(n);
    struct Edge {
      size_t from, to, in_index;
      Bytes data;
    };
    std::vector<std::vector<Edge>> edges(n);
    for (int i = Below(4 * size); i > 0; --i) {
      const auto from = static_cast<size_t>(Below(size)), to = static_cast<size_t>(Below(size));
      edges[from].push_back({from, to, sources[to].size(), RandomBytes(random_, 3)});
      sources[to].push_back(static_cast<int>(from));
      destinations[from].push_back(static_cast<int>(to));
    }
    InMemoryRanks all_to_all(random_, size), all_gather(random_, size);
    std::deque<TypedBuffer> sends, singles, buffers, expected, gathered, expected_gathered;
    std::deque<Layout> layouts;
    for (size_t rank = 0; rank < n; ++rank) {
      const Layout& out =
          layouts.emplace_back(SomeBlocks(random_, std::vector<MPI_Aint>(destinations[rank].size(), 3)));
      const Layout& in = layouts.emplace_back(SomeBlocks(random_, std::vector<MPI_Aint>(sources[rank].size(), 3)));
      TypedBuffer& send = sends.emplace_back(SomeLayout(), out.room);
      for (size_t i = 0; i < edges[rank].size(); ++i) send.Put(out.displacements[i], edges[rank][i].data);
      const Datatype& type = SomeLayout();
      expected.push_back(buffers.emplace_back(type, in.room));
      expected_gathered.push_back(gathered.emplace_back(type, in.room));
      singles.emplace_back(SomeLayout(), 3)
          .Put(0, Bytes(static_cast<size_t>(3 * kElementBytes), static_cast<uint8_t>(rank)));
      for (size_t i = 0; i < sources[rank].size(); ++i) {
        expected_gathered.back().Put(
            in.displacements[i], Bytes(static_cast<size_t>(3 * kElementBytes), static_cast<uint8_t>(sources[rank][i])));
      }
      const Varying receive{buffers.back().origin(), in.counts, in.displacements, &type, {}};
      BuildNeighborAllToAll(all_to_all[static_cast<int>(rank)], sources[rank], destinations[rank], false,
                            {send.origin(), out.counts, out.displacements, &send.type(), {}}, receive);
      Varying receive_all = receive;
      receive_all.buffer = gathered.back().origin();
      BuildNeighborAllGather(all_gather[static_cast<int>(rank)], sources[rank], destinations[rank],
                             {singles.back().origin(), 3, &singles.back().type()}, receive_all);
    }
    for (const auto& of_rank : edges) {
      for (const Edge& edge : of_rank)
        expected[edge.to].Put(layouts[2 * edge.to + 1].displacements[edge.in_index], edge.data);
    }
    RunAndCompare(all_to_all, buffers, expected, [] {});
    RunAndCompare(all_gather, gathered, expected_gathered, [] {});
  });
}

// In a ring the block for the left neighbour arrives there as that of its right one, also with one rank or two.
TEST_F(DataMovement, NeighborsOfAPeriodicDimensionOfOneOrTwoRanksGetTheRightBlock) {
  for (int size : {1, 2, 3, 5}) {
    InMemoryRanks ranks(random_, size);
    std::deque<TypedBuffer> sends, buffers, expected;
    const std::vector<MPI_Aint> counts{1, 1}, displacements{0, 1};
    auto block = [](int rank, int direction) {
      return Bytes(kElementBytes, static_cast<uint8_t>(2 * rank + direction));
    };
    for (int rank = 0; rank < size; ++rank) {
      const int left = (rank + size - 1) % size, right = (rank + 1) % size;
      const std::vector<int> neighbours{left, right};
      TypedBuffer& send = sends.emplace_back(LayoutOfThree(1), 2);
      send.Put(0, block(rank, 0));
      send.Put(1, block(rank, 1));
      TypedBuffer& buffer = buffers.emplace_back(LayoutOfThree(0), 2);
      expected.push_back(buffer);
      expected.back().Put(0, block(left, 1));
      expected.back().Put(1, block(right, 0));
      BuildNeighborAllToAll(ranks[rank], neighbours, neighbours, true,
                            {send.origin(), counts, displacements, &send.type(), {}},
                            {buffer.origin(), counts, displacements, &buffer.type(), {}});
    }
    RunAndCompare(ranks, buffers, expected, [] {});
  }
}

TEST_F(DataMovement, NoNeighbourIsNotSentToAndItsBlockIsLeftAlone) {
  InMemoryRanks ranks(random_, 1);
  const std::vector<int> none{MPI_PROC_NULL, MPI_PROC_NULL};
  const std::vector<MPI_Aint> counts{1, 1}, displacements{0, 1};
  TypedBuffer send(LayoutOfThree(0), 2);
  std::deque<TypedBuffer> buffers;
  buffers.emplace_back(LayoutOfThree(0), 2);
  const std::deque<TypedBuffer> expected = buffers;
  BuildNeighborAllToAll(ranks[0], none, none, true, {send.origin(), counts, displacements, &send.type(), {}},
                        {buffers[0].origin(), counts, displacements, &buffers[0].type(), {}});
  RunAndCompare(ranks, buffers, expected, [] {});
}

TEST_F(DataMovement, CountsThatDoNotMatchAreSeen) {
  InMemoryRanks ranks(random_, 2);
  TypedBuffer a(LayoutOfThree(0), 4), b(LayoutOfThree(0), 4);
  BuildBroadcast(ranks[0], {0, 2}, Algorithm::kBinomial, a.origin(), 3, a.type(), 0);
  BuildBroadcast(ranks[1], {1, 2}, Algorithm::kBinomial, b.origin(), 4, b.type(), 0);
  EXPECT_EQ(ranks.Run(), "process 1 expects 48 bytes of process 0, which sends 36");
}

}  // namespace
}  // namespace weft::mpi
