#include "mpi_hybrid/comm/topology.h"

#include <gtest/gtest.h>

#include <numeric>

namespace weft::mpi {
namespace {

Topology Grid(std::vector<int> dims, std::vector<int> periods) {
  Topology grid;
  grid.kind = MPI_CART;
  grid.dims = std::move(dims);
  grid.periods = std::move(periods);
  return grid;
}

std::vector<int> Dims(int nodes, std::vector<int> dims) {
  const Error error = ChooseDims(nodes, dims);
  EXPECT_TRUE(error.ok()) << error.message();
  return dims;
}

TEST(TopologyTest, CartesianRanksAreRowMajor) {
  const Topology grid = Grid({2, 3, 4}, {0, 0, 0});
  EXPECT_EQ(grid.CoordinatesOf(0), (std::vector<int>{0, 0, 0}));
  EXPECT_EQ(grid.CoordinatesOf(5), (std::vector<int>{0, 1, 1}));
  EXPECT_EQ(grid.CoordinatesOf(23), (std::vector<int>{1, 2, 3}));
  for (int rank = 0; rank < 24; ++rank) EXPECT_EQ(grid.RankOf(grid.CoordinatesOf(rank)), rank);
}

TEST(TopologyTest, PeriodicCoordinatesWrapAndOthersAreNobody) {
  const Topology grid = Grid({3, 4}, {1, 0});
  EXPECT_EQ(grid.RankOf(std::vector<int>{-1, 2}), 10);
  EXPECT_EQ(grid.RankOf(std::vector<int>{-7, 2}), 10);
  EXPECT_EQ(grid.RankOf(std::vector<int>{5, 2}), 10);
  EXPECT_EQ(grid.RankOf(std::vector<int>{0, 4}), MPI_PROC_NULL);
}

TEST(TopologyTest, ShiftWrapsOnlyPeriodicDimensionsForAnyDisplacement) {
  const Topology grid = Grid({3, 4}, {1, 0});
  EXPECT_EQ(grid.Shifted(0, 0, -1), 8);
  EXPECT_EQ(grid.Shifted(0, 0, 5), 8);
  EXPECT_EQ(grid.Shifted(0, 0, 2147483647), grid.Shifted(0, 0, 1));
  EXPECT_EQ(grid.Shifted(0, 1, -1), MPI_PROC_NULL);
  EXPECT_EQ(grid.Shifted(0, 1, 3), 3);
  EXPECT_EQ(grid.Shifted(1, 1, 2147483647), MPI_PROC_NULL);
}

TEST(TopologyTest, CartesianNeighboursAreLowThenHighOfEachDimension) {
  const Topology grid = Grid({3, 4}, {1, 0});
  EXPECT_EQ(grid.InNeighbours(0), (std::vector<int>{8, 4, MPI_PROC_NULL, 1}));
  EXPECT_EQ(grid.OutNeighbours(5), (std::vector<int>{1, 9, 4, 6}));
  EXPECT_EQ(Grid({1}, {1}).OutNeighbours(0), (std::vector<int>{0, 0}));
  EXPECT_TRUE(Grid({}, {}).OutNeighbours(0).empty());
}

TEST(TopologyTest, GraphNeighboursComeFromTheIndex) {
  Topology graph;
  graph.kind = MPI_GRAPH;
  graph.index = {2, 3, 4, 6};  // the example of MPI 4.0 section 8.5.3
  graph.edges = {1, 3, 0, 3, 0, 2};
  EXPECT_EQ(graph.OutNeighbours(0), (std::vector<int>{1, 3}));
  EXPECT_EQ(graph.InNeighbours(1), (std::vector<int>{0}));
  EXPECT_EQ(graph.OutNeighbours(3), (std::vector<int>{0, 2}));
}

TEST(DimsTest, GivesTheFactorsThatMpichDoes) {
  EXPECT_EQ(Dims(6, {0, 0}), (std::vector<int>{3, 2}));
  EXPECT_EQ(Dims(7, {0, 0}), (std::vector<int>{7, 1}));
  EXPECT_EQ(Dims(12, {0, 0, 0}), (std::vector<int>{3, 2, 2}));
  EXPECT_EQ(Dims(360, {0, 0, 0}), (std::vector<int>{10, 6, 6}));
  EXPECT_EQ(Dims(20, {0, 0, 0, 0}), (std::vector<int>{5, 2, 2, 1}));
  EXPECT_EQ(Dims(1008, {0, 0, 0}), (std::vector<int>{12, 12, 7}));
  EXPECT_EQ(Dims(3000, {0, 0, 0, 0, 0, 0}), (std::vector<int>{5, 5, 5, 4, 3, 2}));
  // Of several with the same difference that with the largest last dimension.
  EXPECT_EQ(Dims(324675, {0, 0, 0, 0}), (std::vector<int>{39, 37, 15, 15}));
  EXPECT_EQ(Dims(590520, {0, 0, 0, 0}), (std::vector<int>{38, 37, 21, 20}));
  EXPECT_EQ(Dims(2147483647, {0, 0}), (std::vector<int>{2147483647, 1}));
}

TEST(DimsTest, KeepsTheDimensionsThatAreGiven) {
  EXPECT_EQ(Dims(6, {0, 3, 0}), (std::vector<int>{2, 3, 1}));
  EXPECT_EQ(Dims(6, {2, 3}), (std::vector<int>{2, 3}));
}

TEST(DimsTest, IsDescendingAndExactForEverySize) {
  for (int nodes = 1; nodes <= 500; ++nodes) {
    const std::vector<int> dims = Dims(nodes, {0, 0, 0, 0});
    EXPECT_EQ(std::accumulate(dims.begin(), dims.end(), 1, std::multiplies<>()), nodes);
    EXPECT_TRUE(std::is_sorted(dims.rbegin(), dims.rend())) << nodes;
  }
}

TEST(DimsTest, RefusesWhatCannotBe) {
  std::vector<int> uneven = {0, 4}, negative = {0, -1}, wrong = {2, 2};
  EXPECT_EQ(ChooseDims(6, uneven).mpi_class(), MPI_ERR_DIMS);
  EXPECT_EQ(ChooseDims(6, negative).mpi_class(), MPI_ERR_DIMS);
  EXPECT_EQ(ChooseDims(6, wrong).mpi_class(), MPI_ERR_DIMS);
  EXPECT_EQ(ChooseDims(6, negative).message(), "dims[1] is negative: -1");
}

}  // namespace
}  // namespace weft::mpi
