// Reductions in pieces give what the algorithms by messages give, to the last bit.
#include "mpi_hybrid/coll/host/fold.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "mpi_hybrid/coll/algorithms.h"
#include "mpi_hybrid/coll/testing/in_memory_ranks.h"

namespace weft::mpi::coll {
namespace {

using Vector = std::vector<double>;

class FoldTest : public testing::Test {
 protected:
  // Sums of numbers that differ so much that each order has another result.
  Vector Numbers(MPI_Aint count) {
    Vector numbers(static_cast<size_t>(count));
    for (double& number : numbers) number = std::ldexp(static_cast<double>(random_()) - 2e9, static_cast<int>(random_() % 60));
    return numbers;
  }

  Vector ByPieces(FoldOrder order, const std::vector<Vector>& inputs, const Op& op) {
    const MPI_Aint count = static_cast<MPI_Aint>(inputs[0].size());
    Vector result(inputs[0].size());
    Fold fold;
    fold.Begin(order, static_cast<int>(inputs.size()), count, double_, op);
    for (MPI_Aint first = 0; first < count;) {
      const MPI_Aint piece = std::min<MPI_Aint>(count - first, 1 + random_() % 40);
      std::vector<const uint8_t*> here;
      for (const Vector& input : inputs) here.push_back(reinterpret_cast<const uint8_t*>(input.data() + first));
      fold.Compute(first, piece, here, reinterpret_cast<uint8_t*>(result.data() + first));
      first += piece;
    }
    return result;
  }

  // By messages; at `root` alone if it is not negative.
  std::vector<Vector> ByMessages(Algorithm algorithm, const std::vector<Vector>& inputs, int root) {
    const int size = static_cast<int>(inputs.size());
    InMemoryRanks ranks(random_, size);
    std::vector<Vector> results(inputs.size(), Vector(inputs[0].size()));
    for (int rank = 0; rank < size; ++rank) {
      const Reduction reduction{inputs[static_cast<size_t>(rank)].data(), results[static_cast<size_t>(rank)].data(),
                                static_cast<MPI_Aint>(inputs[0].size()), &double_, &sum_};
      if (root < 0)
        BuildAllReduce(ranks[rank], {rank, size}, algorithm, reduction);
      else
        BuildReduce(ranks[rank], {rank, size}, algorithm, reduction, root);
    }
    EXPECT_EQ(ranks.Run(), "");
    return results;
  }

  std::mt19937 random_{7};
  const Datatype& double_ = *Datatype::Find(MPI_DOUBLE);
  const Op& sum_ = *Op::Find(MPI_SUM);
};

TEST_F(FoldTest, AnAllreduceHasTheResultOfTheMessagesAlgorithms) {
  const std::pair<Algorithm, FoldOrder::Shape> kPairs[] = {{Algorithm::kDoubling, FoldOrder::Shape::kDoubling},
                                                           {Algorithm::kRabenseifner, FoldOrder::Shape::kDoubling},
                                                           {Algorithm::kRing, FoldOrder::Shape::kRing}};
  for (const auto& [algorithm, shape] : kPairs) {
    for (int size = 2; size <= 17; ++size) {
      SCOPED_TRACE("order " + std::to_string(static_cast<int>(shape)) + ", ranks " + std::to_string(size));
      std::vector<Vector> inputs;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Numbers(101));
      const Vector result = ByPieces({shape}, inputs, sum_);
      for (const Vector& other : ByMessages(algorithm, inputs, -1)) ASSERT_EQ(result, other);
    }
  }
}

TEST_F(FoldTest, AReduceHasTheResultOfTheMessagesAlgorithms) {
  const std::pair<Algorithm, FoldOrder::Shape> kPairs[] = {{Algorithm::kBinomial, FoldOrder::Shape::kBinomial},
                                                           {Algorithm::kRabenseifner, FoldOrder::Shape::kDoubling}};
  for (const auto& [algorithm, shape] : kPairs) {
    for (int size = 2; size <= 17; ++size) {
      const int root = static_cast<int>(random_() % static_cast<unsigned>(size));
      SCOPED_TRACE("order " + std::to_string(static_cast<int>(shape)) + ", ranks " + std::to_string(size) + ", root " +
                   std::to_string(root));
      std::vector<Vector> inputs;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Numbers(101));
      ASSERT_EQ(ByPieces({shape, root}, inputs, sum_), ByMessages(algorithm, inputs, root)[static_cast<size_t>(root)]);
    }
  }
}

// a op b = a: only the order of ranks gives rank 0's.
void First(void* in, void* inout, int* count, MPI_Datatype*) { std::memcpy(inout, in, sizeof(double) * static_cast<size_t>(*count)); }

TEST_F(FoldTest, OperandsAreInTheOrderOfRanks) {
  Op first;
  first.commutative = false;
  first.function = &First;
  for (const FoldOrder::Shape shape : {FoldOrder::Shape::kDoubling, FoldOrder::Shape::kBinomial}) {
    for (int size = 2; size <= 17; ++size) {
      std::vector<Vector> inputs;
      for (int rank = 0; rank < size; ++rank) inputs.push_back(Numbers(30));
      ASSERT_EQ(ByPieces({shape}, inputs, first), inputs[0]) << size << " ranks";
    }
  }
}

}  // namespace
}  // namespace weft::mpi::coll
