// Reduction algorithms, run for all ranks in one process and compared with a reduction in the order of ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/testing/in_memory_ranks.h"

namespace weft::mpi {
namespace {

constexpr int kMostRanks = 17;

// An element: the function x -> slope * x + offset on 32-bit integers. Composition is associative and does not commute.
struct Affine {
  uint32_t slope, offset;
  bool operator==(const Affine&) const = default;
};
Affine Compose(Affine a, Affine b) { return {a.slope * b.slope, a.slope * b.offset + a.offset}; }
Affine Add(Affine a, Affine b) { return {a.slope + b.slope, a.offset + b.offset}; }

// In memory an element has a gap of 4 bytes behind it.
struct Gapped {
  Affine value;
  uint32_t gap;
};
template <Affine (*Combine)(Affine, Affine)>
void Apply(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) {
    auto& target = static_cast<Gapped*>(inout)[i].value;
    target = Combine(static_cast<const Gapped*>(in)[i].value, target);
  }
}

class Reductions : public testing::Test {
 protected:
  Reductions() {
    const Ref<Datatype> pair = MakeContiguous(2, *Datatype::Find(MPI_UINT32_T));
    type_ = MakeResized(*pair, 0, sizeof(Gapped));
    ordered_ = MakeRef<Op>();
    ordered_->commutative = false;
    ordered_->function = Apply<Compose>;
    commutative_ = MakeRef<Op>();
    commutative_->function = Apply<Add>;
  }

  int Below(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  MPI_Aint SomeCount() { return Below(4) == 0 ? Below(3) : Below(60); }

  std::vector<Gapped> Random(MPI_Aint count) {
    std::vector<Gapped> result(static_cast<size_t>(count));
    for (Gapped& element : result) element = {{static_cast<uint32_t>(random_()) | 1, static_cast<uint32_t>(random_())}, kGap};
    return result;
  }

  // `body(size, op)` for operations that commute and that do not.
  template <typename Body>
  void ForEachSize(Body body) {
    for (unsigned seed = 1; seed <= 6; ++seed) {
      for (int size = 1; size <= kMostRanks; ++size) {
        random_.seed(seed * 100 + static_cast<unsigned>(size));
        const Op& op = Below(2) == 0 ? *ordered_ : *commutative_;
        SCOPED_TRACE("seed " + std::to_string(seed) + ", " + std::to_string(size) + " ranks" +
                     (op.commutative ? "" : ", in order"));
        body(size, op);
        if (HasFailure()) return;
      }
    }
  }

  // inputs[first] op ... op inputs[last - 1], element by element.
  std::vector<Gapped> Expected(const std::vector<std::vector<Gapped>>& inputs, size_t first, size_t last,
                               const Op& op) {
    std::vector<Gapped> result = inputs[first];
    for (size_t i = first + 1; i < last; ++i) {
      for (size_t k = 0; k < result.size(); ++k) {
        const Affine a = result[k].value, b = inputs[i][k].value;
        result[k].value = op.commutative ? Add(a, b) : Compose(a, b);
      }
    }
    return result;
  }

  static constexpr uint32_t kGap = 0xabababab;
  std::mt19937 random_;
  Ref<Datatype> type_;
  Ref<Op> ordered_, commutative_;
};

// Elements [first, first + expected.size()) of `got` are `expected`, gaps untouched.
void ExpectSame(const std::vector<Gapped>& got, const std::vector<Gapped>& expected, const std::string& where) {
  ASSERT_EQ(got.size(), expected.size()) << where;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_TRUE(got[i].value == expected[i].value) << where << ", element " << i;
    ASSERT_EQ(got[i].gap, 0xabababab) << where << ", gap behind element " << i;
  }
}

TEST_F(Reductions, ReduceCombinesInTheOrderOfRanks) {
  for (Algorithm algorithm : {Algorithm::kBinomial, Algorithm::kRabenseifner}) {
    ForEachSize([&](int size, const Op& op) {
      if (!IsLegal(Collective::kReduce, algorithm, size, op.commutative)) return;
      const int root = Below(size);
      const MPI_Aint count = SomeCount();
      const bool in_place = Below(2) == 0;
      std::vector<std::vector<Gapped>> inputs;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Random(count));
      const auto before = inputs;
      std::vector<Gapped> result(static_cast<size_t>(count), Gapped{{0, 0}, kGap});
      InMemoryRanks ranks(random_, size);
      for (int rank = 0; rank < size; ++rank) {
        const bool here = rank == root;
        if (here && in_place) result = inputs[static_cast<size_t>(rank)];
        const void* send = here && in_place ? result.data() : inputs[static_cast<size_t>(rank)].data();
        BuildReduce(ranks[rank], {rank, size}, algorithm,
                    {send, here ? result.data() : nullptr, count, type_.get(), &op}, root);
      }
      for (int run = 0; run < 2; ++run) {
        if (in_place)
          std::copy(inputs[static_cast<size_t>(root)].begin(), inputs[static_cast<size_t>(root)].end(), result.begin());
        ASSERT_EQ(ranks.Run(), "");
        ExpectSame(result, Expected(inputs, 0, inputs.size(), op), "root");
      }
      for (size_t i = 0; i < inputs.size(); ++i) ExpectSame(inputs[i], before[i], "input");
    });
  }
}

TEST_F(Reductions, AllReduceGivesEveryRankTheResult) {
  for (Algorithm algorithm : {Algorithm::kDoubling, Algorithm::kRabenseifner, Algorithm::kRing}) {
    ForEachSize([&](int size, const Op& op) {
      if (!IsLegal(Collective::kAllReduce, algorithm, size, op.commutative)) return;
      const MPI_Aint count = SomeCount();
      const bool in_place = Below(2) == 0;
      std::vector<std::vector<Gapped>> inputs, results;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Random(count));
      for (int rank = 0; rank < size; ++rank) results.push_back(Random(count));
      const auto before = inputs;
      InMemoryRanks ranks(random_, size);
      for (int rank = 0; rank < size; ++rank) {
        auto& result = results[static_cast<size_t>(rank)];
        const void* send = in_place ? result.data() : inputs[static_cast<size_t>(rank)].data();
        BuildAllReduce(ranks[rank], {rank, size}, algorithm, {send, result.data(), count, type_.get(), &op});
      }
      for (int run = 0; run < 2; ++run) {
        for (size_t i = 0; i < inputs.size() && in_place; ++i)
          std::copy(inputs[i].begin(), inputs[i].end(), results[i].begin());
        ASSERT_EQ(ranks.Run(), "");
        const auto expected = Expected(inputs, 0, inputs.size(), op);
        for (size_t i = 0; i < results.size(); ++i) ExpectSame(results[i], expected, "rank " + std::to_string(i));
      }
      for (size_t i = 0; i < inputs.size(); ++i) ExpectSame(inputs[i], before[i], "input");
    });
  }
}

TEST_F(Reductions, ReduceScatterGivesEachRankItsPiece) {
  for (Algorithm algorithm : {Algorithm::kHalving, Algorithm::kDoubling, Algorithm::kPairwise}) {
    ForEachSize([&](int size, const Op& op) {
      if (!IsLegal(Collective::kReduceScatter, algorithm, size, op.commutative)) return;
      std::vector<MPI_Aint> counts(static_cast<size_t>(size));
      for (MPI_Aint& count : counts) count = Below(3) == 0 ? 0 : Below(12);
      const MPI_Aint total = std::accumulate(counts.begin(), counts.end(), MPI_Aint{0});
      const bool in_place = Below(2) == 0;
      std::vector<std::vector<Gapped>> inputs, results;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Random(total));
      for (int rank = 0; rank < size; ++rank)
        results.push_back(Random(in_place ? total : counts[static_cast<size_t>(rank)]));
      InMemoryRanks ranks(random_, size);
      for (int rank = 0; rank < size; ++rank) {
        auto& result = results[static_cast<size_t>(rank)];
        const void* send = in_place ? result.data() : inputs[static_cast<size_t>(rank)].data();
        BuildReduceScatter(ranks[rank], {rank, size}, algorithm, {send, result.data(), 0, type_.get(), &op}, counts);
      }
      for (int run = 0; run < 2; ++run) {
        for (size_t i = 0; i < inputs.size() && in_place; ++i)
          std::copy(inputs[i].begin(), inputs[i].end(), results[i].begin());
        ASSERT_EQ(ranks.Run(), "");
        const auto whole = Expected(inputs, 0, inputs.size(), op);
        auto first = whole.begin();
        for (size_t i = 0; i < results.size(); ++i) {
          const std::vector<Gapped> expected(first, first + counts[i]);
          first += counts[i];
          ExpectSame({results[i].begin(), results[i].begin() + counts[i]}, expected, "rank " + std::to_string(i));
        }
      }
    });
  }
}

TEST_F(Reductions, ScanIsThePrefixInTheOrderOfRanks) {
  for (bool exclusive : {false, true}) {
    ForEachSize([&](int size, const Op& op) {
      const MPI_Aint count = SomeCount();
      const bool in_place = Below(2) == 0;
      std::vector<std::vector<Gapped>> inputs, results;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Random(count));
      for (int rank = 0; rank < size; ++rank) results.push_back(Random(count));
      InMemoryRanks ranks(random_, size);
      for (int rank = 0; rank < size; ++rank) {
        auto& result = results[static_cast<size_t>(rank)];
        const void* send = in_place ? result.data() : inputs[static_cast<size_t>(rank)].data();
        BuildScan(ranks[rank], {rank, size}, {send, result.data(), count, type_.get(), &op}, exclusive);
      }
      for (int run = 0; run < 2; ++run) {
        for (size_t i = 0; i < inputs.size() && in_place; ++i)
          std::copy(inputs[i].begin(), inputs[i].end(), results[i].begin());
        ASSERT_EQ(ranks.Run(), "");
        for (size_t i = exclusive ? 1 : 0; i < results.size(); ++i)
          ExpectSame(results[i], Expected(inputs, 0, exclusive ? i : i + 1, op), "rank " + std::to_string(i));
      }
    });
  }
}

// Rounding, signed zeros and NaN: whatever the result is, all ranks have the same bits.
TEST_F(Reductions, FloatingResultsAreTheSameAtAllRanks) {
  for (Algorithm algorithm : {Algorithm::kDoubling, Algorithm::kRabenseifner, Algorithm::kRing}) {
    for (MPI_Op handle : {MPI_SUM, MPI_PROD, MPI_MAX, MPI_MIN}) {
      for (int size = 2; size <= kMostRanks; ++size) {
        random_.seed(static_cast<unsigned>(size));
        constexpr size_t kCount = 50;
        const double special[] = {0.0, -0.0, std::numeric_limits<double>::quiet_NaN(),
                                  -std::numeric_limits<double>::quiet_NaN(), 1e300};
        std::vector<std::vector<double>> inputs(static_cast<size_t>(size), std::vector<double>(kCount)),
            results = inputs;
        for (auto& input : inputs) {
          for (double& value : input)
            value = Below(8) == 0 ? special[Below(5)] : std::ldexp(static_cast<double>(random_()), Below(40) - 20);
        }
        InMemoryRanks ranks(random_, size);
        for (int rank = 0; rank < size; ++rank) {
          const auto i = static_cast<size_t>(rank);
          BuildAllReduce(ranks[rank], {rank, size}, algorithm,
                         {inputs[i].data(), results[i].data(), kCount, Datatype::Find(MPI_DOUBLE), Op::Find(handle)});
        }
        ASSERT_EQ(ranks.Run(), "");
        for (size_t i = 1; i < results.size(); ++i)
          ASSERT_EQ(std::memcmp(results[0].data(), results[i].data(), kCount * sizeof(double)), 0)
              << size << " ranks, rank " << i;
      }
    }
  }
}

}  // namespace
}  // namespace weft::mpi
