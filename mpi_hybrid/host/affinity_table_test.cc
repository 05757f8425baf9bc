#include "mpi_hybrid/host/affinity_table.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <thread>
#include <vector>

namespace weft::mpi::host {
namespace {

cpu_set_t Set(std::initializer_list<int> processors) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int processor : processors) CPU_SET(processor, &set);
  return set;
}

TEST(AffinityTableTest, CountsThoseWhoNeverShareAProcessor) {
  std::vector<Affinity> memory(5);
  AffinityTable table(memory);
  EXPECT_EQ(table.ElsewhereThan(Set({0})), 0);
  table.Add(Set({0, 1}));
  table.Add(Set({0, 1}));
  table.Add(Set({1000}));
  table.Add(Set({2}));
  table.Add(Set({2, 3}));
  EXPECT_EQ(table.ElsewhereThan(Set({0})), 3);
  EXPECT_EQ(table.ElsewhereThan(Set({0, 1})), 3);
  EXPECT_EQ(table.ElsewhereThan(Set({3})), 4);
  EXPECT_EQ(table.ElsewhereThan(Set({2, 1000})), 2);
  EXPECT_EQ(table.ElsewhereThan(Set({7})), 5);
}

TEST(AffinityTableTest, TakesAnEntryForASetAndNotForAProcess) {
  std::vector<Affinity> memory(1000);
  AffinityTable table(memory);
  for (int i = 0; i < 1000; ++i) table.Add(Set({i % 2}));
  EXPECT_EQ(table.ElsewhereThan(Set({0})), 500);
  EXPECT_EQ(memory[2].state, Affinity::kFree);
}

TEST(AffinityTableTest, ManyAddTogether) {
  constexpr int kThreads = 16;
  std::vector<Affinity> memory(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([&memory, i] { AffinityTable(memory).Add(Set({i % 4})); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(AffinityTable(memory).ElsewhereThan(Set({3})), kThreads * 3 / 4);
}

TEST(AffinityTableTest, WhatAnotherProcessOverwroteIsOnlyWrong) {
  std::vector<Affinity> memory(3);
  AffinityTable table(memory);
  table.Add(Set({1}));
  memory[0].processes = UINT32_MAX;
  memory[1].state = 17;
  table.Add(Set({2}));
  EXPECT_EQ(table.ElsewhereThan(Set({0})), 3) << "no more than there are";
  for (Affinity& entry : memory) entry.state = Affinity::kBeingWritten;
  table.Add(Set({2}));  // no room
  EXPECT_EQ(table.ElsewhereThan(Set({0})), 0);
}

}  // namespace
}  // namespace weft::mpi::host
