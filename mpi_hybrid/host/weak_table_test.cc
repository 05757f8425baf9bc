#include "mpi_hybrid/host/weak_table.h"

#include <gtest/gtest.h>

#include <vector>

namespace weft::mpi::host {
namespace {

TEST(WeakTableTest, FindsWhatSomebodyHas) {
  WeakTable<int, int> table;
  auto seven = std::make_shared<int>(7);
  table.Put(1, seven);
  EXPECT_EQ(table.Find(1), seven);
  EXPECT_EQ(table.Find(2), nullptr);
  seven.reset();
  EXPECT_EQ(table.Find(1), nullptr);
}

TEST(WeakTableTest, DoesNotGrowWithWhatIsGone) {
  WeakTable<int, int> table;
  std::vector<std::shared_ptr<int>> kept;
  for (int i = 0; i < 10'000; ++i) {
    const auto object = std::make_shared<int>(i);
    if (i % 100 == 0) kept.push_back(object);
    table.Put(i, object);
  }
  EXPECT_LE(table.entries(), 2 * kept.size() + 16);
  for (const auto& object : kept) EXPECT_EQ(table.Find(*object), object);
}

}  // namespace
}  // namespace weft::mpi::host
