// Collectives of several IMPI clients, run for all ranks in one process: what they give, and which messages go from client to client, by what
// tag.
#include "mpi_hybrid/coll/clients.h"

#include <gtest/gtest.h>

#include <deque>
#include <map>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "mpi_hybrid/coll/testing/in_memory_ranks.h"
#include "mpi_hybrid/coll/testing/typed_buffer.h"

namespace weft::mpi {
namespace {

constexpr int kMostRanks = 17;

using Hop = std::pair<int, int>;  // from, to

class ClientsTest : public testing::Test {
 protected:
  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  MPI_Aint SomeCount() { return Below(4) == 0 ? Below(2) : Below(40); }
  // Blocks of the ranks in a buffer: all of one size and one behind the other, or `varying` and apart.
  struct Blocks {
    std::vector<MPI_Aint> counts, displacements;
    MPI_Aint end = 0;
  };
  Blocks SomeBlocks(int size, bool varying) {
    Blocks blocks;
    blocks.counts.assign(static_cast<size_t>(size), SomeCount());
    for (MPI_Aint& count : blocks.counts) {
      if (varying) count = SomeCount();
      blocks.displacements.push_back(blocks.end + (varying ? 1 : 0));
      blocks.end = blocks.displacements.back() + count;
    }
    return blocks;
  }
  const Datatype& SomeLayout() { return LayoutOfThree(random_() % 4); }

  // `body(size)` for groups whose ranks belong to clients at random, with limits at random.
  template <typename Body>
  void ForEachLayout(Body body) {
    for (unsigned seed = 1; seed <= 12; ++seed) {
      for (int size = 1; size <= kMostRanks; ++size) {
        random_.seed(seed * 100 + static_cast<unsigned>(size));
        std::vector<int> clients;
        const int most = 1 + Below(size);
        for (int rank = 0; rank < size; ++rank) clients.push_back(7 * Below(most));
        Layout(clients, {.long_from = Below(2) == 0 ? 240 : MPI_Aint{1} << 30, .tree_from = Below(2) == 0 ? 2 : 100});
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(size) + " ranks");
        body(size);
        if (HasFailure()) return;
      }
    }
  }
  void Layout(const std::vector<int>& clients, Clients::Limits limits) {
    clients_.clear();
    for (size_t rank = 0; rank < clients.size(); ++rank) clients_.emplace_back(static_cast<int>(rank), clients, limits);
  }
  const Clients& at(int rank) { return clients_[static_cast<size_t>(rank)]; }

  // Messages from client to client, by tag; every one of them has a tag of the protocol, and no other message has.
  std::map<int, std::multiset<Hop>> Between(InMemoryRanks& ranks) {
    std::map<int, std::multiset<Hop>> found;
    for (int rank = 0; rank < static_cast<int>(clients_.size()); ++rank) {
      for (const Step& step : ranks[rank].steps()) {
        if (step.kind != Step::Kind::kSend) continue;
        if (at(0).ClientOf(rank) == at(0).ClientOf(step.peer)) continue;
        EXPECT_NE(step.tag, 0) << rank << " to " << step.peer;
        found[step.tag].insert({rank, step.peer});
      }
    }
    return found;
  }

  // Runs everything twice, as a persistent collective is, and compares.
  template <typename Reset>
  void RunAndCompare(InMemoryRanks& ranks, std::deque<TypedBuffer>& buffers, const std::deque<TypedBuffer>& expected, Reset reset) {
    for (int run = 0; run < 2; ++run) {
      reset();
      ASSERT_EQ(ranks.Run(), "");
      for (size_t i = 0; i < buffers.size(); ++i) ASSERT_TRUE(buffers[i] == expected[i]) << "rank " << i << " in run " << run;
    }
  }

  std::mt19937 random_;
  std::deque<Clients> clients_;
};

TEST_F(ClientsTest, TheLowestRankOfAClientIsItsMaster) {
  // The example of section 4.2.
  const std::vector<int> clients = {'A', 'A', 'B', 'B', 'A', 'B', 'C', 'C'};
  const Clients of(5, clients, {});
  ASSERT_EQ(of.count(), 3);
  EXPECT_EQ(of.MasterOf(0), 0);
  EXPECT_EQ(of.MasterOf(1), 2);
  EXPECT_EQ(of.MasterOf(2), 6);
  const std::vector<int> of_b = {2, 3, 5};
  EXPECT_TRUE(std::equal(of_b.begin(), of_b.end(), of.MembersOf(1).begin(), of.MembersOf(1).end()));
  EXPECT_EQ(of.ClientOf(7), 2);
}

TEST_F(ClientsTest, BarrierLetsNobodyOutBeforeTheLastIsIn) {
  ForEachLayout([&](int size) {
    const int late = Below(size);
    InMemoryRanks ranks(random_, size), without(random_, size);
    for (int rank = 0; rank < size; ++rank) {
      at(rank).BuildBarrier(ranks[rank]);
      if (rank != late) at(rank).BuildBarrier(without[rank]);
    }
    EXPECT_EQ(ranks.Run(), "");
    if (size == 1) return;
    EXPECT_NE(without.Run(), "");
    for (int rank = 0; rank < size; ++rank) {
      if (rank != late) {
        EXPECT_FALSE(without.Finished(rank)) << rank;
      }
    }
  });
}

TEST_F(ClientsTest, BelowTheLimitMastersMeetAtMasterZero) {
  Layout({0, 1, 1, 2}, {.tree_from = 4});
  InMemoryRanks ranks(random_, 4);
  for (int rank = 0; rank < 4; ++rank) at(rank).BuildBarrier(ranks[rank]);
  const std::multiset<Hop> expected = {{1, 0}, {3, 0}, {0, 1}, {0, 3}};
  EXPECT_EQ(Between(ranks)[Clients::kBarrierTag], expected);
}

TEST_F(ClientsTest, FromTheLimitOnTheParentOfAMasterLacksItsHighestBit) {
  Layout({0, 1, 2, 3, 4, 5, 6}, {.tree_from = 4});
  InMemoryRanks barrier(random_, 7), broadcast(random_, 7);
  for (int rank = 0; rank < 7; ++rank) {
    at(rank).BuildBarrier(barrier[rank]);
    at(rank).BuildBroadcast(broadcast[rank], nullptr, 0, *Datatype::Find(MPI_BYTE), 2);
  }
  const std::multiset<Hop> tree = {{0, 1}, {0, 2}, {0, 4}, {1, 3}, {1, 5}, {2, 6}};
  std::multiset<Hop> both_ways = tree, from_two;
  for (const auto& [parent, child] : tree) {
    both_ways.insert({child, parent});
    from_two.insert({(parent + 2) % 7, (child + 2) % 7});
  }
  EXPECT_EQ(Between(barrier)[Clients::kBarrierTag], both_ways);
  EXPECT_EQ(Between(broadcast)[Clients::kBroadcastTag], from_two);
}

TEST_F(ClientsTest, TheRootOfABroadcastSendsToTheMastersItself) {
  // Rank 1 is not the master of its client.
  Layout({0, 0, 1, 1, 2, 2}, {.tree_from = 4});
  InMemoryRanks broadcast(random_, 6), reduction(random_, 6);
  std::vector<int> values(6), results(6);
  for (int rank = 0; rank < 6; ++rank) {
    at(rank).BuildBroadcast(broadcast[rank], nullptr, 0, *Datatype::Find(MPI_BYTE), 1);
    at(rank).BuildReduce(reduction[rank], {&values[static_cast<size_t>(rank)], &results[static_cast<size_t>(rank)], 1, Datatype::Find(MPI_INT), Op::Find(MPI_SUM)}, 1);
  }
  const std::multiset<Hop> out = {{1, 2}, {1, 4}}, in = {{2, 1}, {4, 1}};
  EXPECT_EQ(Between(broadcast)[Clients::kBroadcastTag], out);
  EXPECT_EQ(Between(reduction)[Clients::kReduceTag], in);
}

TEST_F(ClientsTest, AReductionToAllIsAReductionToRankZeroAndABroadcast) {
  // As a captured job of two LAM clients does it.
  Layout({0, 1}, {});
  std::vector<int> values(2), results(2);
  InMemoryRanks ranks(random_, 2);
  for (int rank = 0; rank < 2; ++rank)
    at(rank).BuildAllReduce(ranks[rank], {&values[static_cast<size_t>(rank)], &results[static_cast<size_t>(rank)], 1, Datatype::Find(MPI_INT), Op::Find(MPI_SUM)});
  const std::map<int, std::multiset<Hop>> expected = {{Clients::kReduceTag, {{1, 0}}}, {Clients::kBroadcastTag, {{0, 1}}}};
  EXPECT_EQ(Between(ranks), expected);
}

TEST_F(ClientsTest, BroadcastGivesEveryRankTheRootsData) {
  ForEachLayout([&](int size) {
    const int root = Below(size);
    const MPI_Aint count = SomeCount();
    const Bytes data = RandomBytes(random_, count);
    InMemoryRanks ranks(random_, size);
    std::deque<TypedBuffer> buffers, expected;
    for (int rank = 0; rank < size; ++rank) {
      const Datatype& type = SomeLayout();
      expected.emplace_back(type, count).Put(0, data);
      at(rank).BuildBroadcast(ranks[rank], buffers.emplace_back(type, count).origin(), count, type, root);
    }
    // Every other client gets it once.
    EXPECT_EQ(static_cast<int>(Between(ranks)[Clients::kBroadcastTag].size()), at(0).count() - 1);
    RunAndCompare(ranks, buffers, expected, [&] {
      for (int rank = 0; rank < size; ++rank) buffers[static_cast<size_t>(rank)].Put(0, rank == root ? data : Bytes(data.size(), 0));
    });
  });
}

TEST_F(ClientsTest, GatherPutsBlocksInTheOrderOfRanks) {
  for (const bool varying : {false, true}) {
    ForEachLayout([&](int size) {
      const int root = Below(size);
      const bool in_place = Below(2) == 0;
      const auto [counts, displacements, end] = SomeBlocks(size, varying);
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, result, expected;
      const Datatype& type = SomeLayout();
      result.emplace_back(type, end);
      expected.emplace_back(type, end);
      Bytes own;
      for (int rank = 0; rank < size; ++rank) {
        const MPI_Aint count = counts[static_cast<size_t>(rank)];
        const Bytes data = RandomBytes(random_, count);
        TypedBuffer& send = sends.emplace_back(SomeLayout(), count);
        send.Put(0, data);
        expected[0].Put(displacements[static_cast<size_t>(rank)], data);
        if (rank == root) own = data;
        const Uniform from{in_place && rank == root ? MPI_IN_PLACE : send.origin(), count, &send.type()};
        if (varying)
          at(rank).BuildGatherV(ranks[rank], from, {result[0].origin(), counts, displacements, &type, {}}, root);
        else
          at(rank).BuildGather(ranks[rank], from, {result[0].origin(), count, &type}, root);
      }
      for (const auto& [tag, hops] : Between(ranks)) EXPECT_EQ(tag, varying ? Clients::kGatherVTag : Clients::kGatherTag);
      RunAndCompare(ranks, result, expected, [&] {
        result[0].Clear();
        if (in_place) result[0].Put(displacements[static_cast<size_t>(root)], own);
      });
    });
  }
}

TEST_F(ClientsTest, AShortGatherTakesOneMessageAClientAndALongOneOneAProcess) {
  Layout({0, 0, 1, 1, 1, 2, 3}, {.long_from = 8, .tree_from = 4});
  std::vector<char> send(8), receive(7 * 8);
  const auto hops = [&](MPI_Aint bytes, bool scatter) {
    InMemoryRanks ranks(random_, 7);
    const Uniform small{send.data(), bytes, Datatype::Find(MPI_BYTE)}, large{receive.data(), bytes, Datatype::Find(MPI_BYTE)};
    for (int rank = 0; rank < 7; ++rank) scatter ? at(rank).BuildScatter(ranks[rank], large, small, 0) : at(rank).BuildGather(ranks[rank], small, large, 0);
    return Between(ranks)[scatter ? Clients::kScatterTag : Clients::kGatherTag];
  };
  EXPECT_EQ(hops(7, false), (std::multiset<Hop>{{2, 0}, {6, 5}, {5, 0}}));
  EXPECT_EQ(hops(8, false), (std::multiset<Hop>{{2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}}));
  EXPECT_EQ(hops(7, true), (std::multiset<Hop>{{0, 2}, {5, 6}, {0, 5}}));
  EXPECT_EQ(hops(8, true), (std::multiset<Hop>{{0, 2}, {0, 3}, {0, 4}, {0, 5}, {0, 6}}));
}

TEST_F(ClientsTest, WhatIsLongDependsOnExternal32AndNotOnTheProcessor) {
  Layout({0, 1, 1}, {.long_from = 8});
  long send = 0, receive[3];
  const auto messages = [&](MPI_Datatype type) {  // of 8 bytes here; MPI_LONG has 4 in external32
    InMemoryRanks ranks(random_, 3);
    for (int rank = 0; rank < 3; ++rank) at(rank).BuildGather(ranks[rank], {&send, 1, Datatype::Find(type)}, {receive, 1, Datatype::Find(type)}, 0);
    return Between(ranks)[Clients::kGatherTag].size();
  };
  EXPECT_EQ(messages(MPI_LONG), 1U);
  EXPECT_EQ(messages(MPI_INT64_T), 2U);
}

TEST_F(ClientsTest, ScatterGivesEveryRankItsBlock) {
  for (const bool varying : {false, true}) {
    ForEachLayout([&](int size) {
      const int root = Below(size);
      const bool in_place = Below(2) == 0;
      const auto [counts, displacements, end] = SomeBlocks(size, varying);
      InMemoryRanks ranks(random_, size);
      const Datatype& type = SomeLayout();
      TypedBuffer all(type, end);
      std::deque<TypedBuffer> results, expected;
      for (int rank = 0; rank < size; ++rank) {
        const auto i = static_cast<size_t>(rank);
        const Bytes data = RandomBytes(random_, counts[i]);
        all.Put(displacements[i], data);
        TypedBuffer& result = results.emplace_back(SomeLayout(), counts[i]);
        TypedBuffer& wanted = expected.emplace_back(result.type(), counts[i]);
        const bool stays = in_place && rank == root;
        if (!stays) wanted.Put(0, data);
        const Uniform to{stays ? MPI_IN_PLACE : result.origin(), counts[i], &result.type()};
        if (varying)
          at(rank).BuildScatterV(ranks[rank], {all.origin(), counts, displacements, &type, {}}, to, root);
        else
          at(rank).BuildScatter(ranks[rank], {all.origin(), counts[i], &type}, to, root);
      }
      for (const auto& [tag, hops] : Between(ranks)) EXPECT_EQ(tag, varying ? Clients::kScatterVTag : Clients::kScatterTag);
      RunAndCompare(ranks, results, expected, [&] {
        for (TypedBuffer& result : results) result.Clear();
      });
    });
  }
}

TEST_F(ClientsTest, AllGatherGivesEveryRankAllBlocks) {
  for (const bool varying : {false, true}) {
    ForEachLayout([&](int size) {
      const bool in_place = Below(2) == 0;
      const auto [counts, displacements, end] = SomeBlocks(size, varying);
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, results, expected;
      std::vector<Bytes> data;
      for (int rank = 0; rank < size; ++rank) data.push_back(RandomBytes(random_, counts[static_cast<size_t>(rank)]));
      for (int rank = 0; rank < size; ++rank) {
        const auto i = static_cast<size_t>(rank);
        TypedBuffer& send = sends.emplace_back(SomeLayout(), counts[i]);
        send.Put(0, data[i]);
        TypedBuffer& result = results.emplace_back(SomeLayout(), end);
        TypedBuffer& wanted = expected.emplace_back(result.type(), end);
        for (size_t other = 0; other < data.size(); ++other) wanted.Put(displacements[other], data[other]);
        const Uniform from{in_place ? MPI_IN_PLACE : send.origin(), counts[i], &send.type()};
        if (varying)
          at(rank).BuildAllGatherV(ranks[rank], from, {result.origin(), counts, displacements, &result.type(), {}});
        else
          at(rank).BuildAllGather(ranks[rank], from, {result.origin(), counts[i], &result.type()});
      }
      Between(ranks);
      RunAndCompare(ranks, results, expected, [&] {
        for (size_t i = 0; i < results.size(); ++i) {
          results[i].Clear();
          if (in_place) results[i].Put(displacements[i], data[i]);
        }
      });
    });
  }
}

TEST_F(ClientsTest, AllToAllGivesEveryRankAPieceOfEveryOther) {
  for (const bool varying : {false, true}) {
    ForEachLayout([&](int size) {
      const bool in_place = Below(2) == 0;
      // counts[i][j]: from i to j; in place, both directions have the same.
      std::vector<std::vector<MPI_Aint>> counts(static_cast<size_t>(size), std::vector<MPI_Aint>(static_cast<size_t>(size), SomeCount()));
      for (size_t i = 0; varying && i < counts.size(); ++i) {
        for (size_t j = 0; j <= i; ++j) {
          counts[i][j] = SomeCount();
          counts[j][i] = in_place ? counts[i][j] : SomeCount();
        }
      }
      std::vector<std::vector<Bytes>> data(counts.size());
      std::vector<std::vector<MPI_Aint>> out(counts.size()), in(counts.size()), from(counts.size());
      for (size_t i = 0; i < counts.size(); ++i) {
        MPI_Aint sent = 0, received = 0;
        for (size_t j = 0; j < counts.size(); ++j) {
          data[i].push_back(RandomBytes(random_, counts[i][j]));
          from[i].push_back(counts[j][i]);
          out[i].push_back(sent);
          in[i].push_back(received);
          sent += counts[i][j];
          received += counts[j][i];
        }
        out[i].push_back(sent);
        in[i].push_back(received);
      }
      InMemoryRanks ranks(random_, size);
      std::deque<TypedBuffer> sends, results, expected;
      for (int rank = 0; rank < size; ++rank) {
        const auto i = static_cast<size_t>(rank);
        TypedBuffer& send = sends.emplace_back(SomeLayout(), out[i].back());
        TypedBuffer& result = results.emplace_back(SomeLayout(), in[i].back());
        TypedBuffer& wanted = expected.emplace_back(result.type(), in[i].back());
        for (size_t j = 0; j < counts.size(); ++j) {
          send.Put(out[i][j], data[i][j]);
          wanted.Put(in[i][j], data[j][i]);
        }
        const void* const buffer = in_place ? MPI_IN_PLACE : send.origin();
        const std::span<const MPI_Aint> out_of(out[i].data(), counts.size()), in_of(in[i].data(), counts.size());
        if (varying)
          at(rank).BuildAllToAllV(ranks[rank], {buffer, counts[i], out_of, &send.type(), {}}, {result.origin(), from[i], in_of, &result.type(), {}});
        else
          at(rank).BuildAllToAll(ranks[rank], {buffer, counts[0][0], &send.type()}, {result.origin(), counts[0][0], &result.type()});
      }
      for (const auto& [tag, hops] : Between(ranks)) EXPECT_EQ(tag, varying ? Clients::kAllToAllVTag : Clients::kAllToAllTag);
      RunAndCompare(ranks, results, expected, [&] {
        for (size_t i = 0; i < results.size(); ++i) {
          results[i].Clear();
          for (size_t j = 0; in_place && j < counts.size(); ++j) results[i].Put(in[i][j], data[i][j]);
        }
      });
    });
  }
}

// Puts each value behind the others: the result is the ranks in the order in which they were combined. Associative, and it does not commute.
struct Word {
  int length = 0;
  int letters[kMostRanks] = {};
};
void Join(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    Word joined = static_cast<Word*>(in)[i];
    const Word& behind = static_cast<Word*>(inout)[i];
    for (int k = 0; k < behind.length; ++k) joined.letters[joined.length++] = behind.letters[k];
    static_cast<Word*>(inout)[i] = joined;
  }
}

TEST_F(ClientsTest, ReductionsCombineAllRanksAndKeepTheirOrderIfTheOperationDoesNotCommute) {
  const Ref<Datatype> word = MakeContiguous(sizeof(Word) / sizeof(int), *Datatype::Find(MPI_INT));
  for (const bool commutes : {false, true}) {
    const Ref<Op> op = MakeRef<Op>();
    op->function = Join;
    op->commutative = commutes;
    ForEachLayout([&](int size) {
      enum Kind { kReduce, kAllReduce, kReduceScatter, kScan, kExclusiveScan };
      for (const Kind kind : {kReduce, kAllReduce, kReduceScatter, kScan, kExclusiveScan}) {
        const int root = Below(size);
        const MPI_Aint each = 1 + Below(3), count = kind == kReduceScatter ? each * size : each;
        const bool in_place = Below(2) == 0;
        using Words = std::vector<Word>;
        std::vector<Words> inputs(static_cast<size_t>(size), Words(static_cast<size_t>(count))), results = inputs;
        InMemoryRanks ranks(random_, size);
        for (int rank = 0; rank < size; ++rank) {
          const auto i = static_cast<size_t>(rank);
          for (Word& input : inputs[i]) input = {1, {rank}};
          if (in_place) results[i] = inputs[i];
          const bool gets = kind != kReduce || rank == root;
          const Reduction reduction{in_place && gets ? results[i].data() : inputs[i].data(), gets ? results[i].data() : nullptr, count, word.get(), op.get()};
          const std::vector<MPI_Aint> counts(static_cast<size_t>(size), each);
          if (kind == kReduce) at(rank).BuildReduce(ranks[rank], reduction, root);
          if (kind == kAllReduce) at(rank).BuildAllReduce(ranks[rank], reduction);
          if (kind == kReduceScatter) at(rank).BuildReduceScatter(ranks[rank], reduction, counts);
          if (kind == kScan || kind == kExclusiveScan) at(rank).BuildScan(ranks[rank], reduction, kind == kExclusiveScan);
        }
        ASSERT_EQ(ranks.Run(), "") << kind;
        for (int rank = 0; rank < size; ++rank) {
          if ((kind == kReduce && rank != root) || (kind == kExclusiveScan && rank == 0)) continue;
          const int last = kind == kScan ? rank + 1 : kind == kExclusiveScan ? rank : size;
          for (MPI_Aint i = 0; i < each; ++i) {
            const Word& result = results[static_cast<size_t>(rank)][static_cast<size_t>(i)];
            std::vector<int> letters(result.letters, result.letters + result.length), expected(static_cast<size_t>(last));
            std::iota(expected.begin(), expected.end(), 0);
            if (commutes && kind != kScan && kind != kExclusiveScan) std::sort(letters.begin(), letters.end());
            ASSERT_EQ(letters, expected) << "kind " << kind << ", rank " << rank;
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace weft::mpi
