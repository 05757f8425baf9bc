#include "pmi/launch/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>

namespace weft::pmi {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

Topology Synthetic(const char* description) {
  hwloc_topology_t topology = nullptr;
  EXPECT_EQ(hwloc_topology_init(&topology), 0);
  EXPECT_EQ(hwloc_topology_set_synthetic(topology, description), 0) << description;
  EXPECT_EQ(hwloc_topology_load(topology), 0);
  return Topology(topology);
}

// The machine without the CPUs that are not in the list.
Topology Restricted(const char* description, const char* list) {
  Topology topology = Synthetic(description);
  const CpuSet set(hwloc_bitmap_alloc());
  hwloc_bitmap_list_sscanf(set.get(), list);
  EXPECT_EQ(hwloc_topology_restrict(topology.get(), set.get(), 0), 0);
  return topology;
}

BindingRequest Request(const std::string& bind_to, const std::string& map_by) {
  const auto request = ParseBinding(bind_to, map_by);
  EXPECT_TRUE(request) << request.error().message;
  return *request.value();
}

std::string List(hwloc_const_bitmap_t set) {
  char text[256];
  hwloc_bitmap_list_snprintf(text, sizeof(text), set);
  return text;
}

std::vector<std::string> Places(const Topology& topology, const std::string& bind_to, const std::string& map_by = {}) {
  const auto places = PlacesOf(topology.get(), Request(bind_to, map_by));
  EXPECT_TRUE(places) << places.error().message;
  std::vector<std::string> lists;
  for (const CpuSet& place : places.value()) lists.push_back(List(place.get()));
  return lists;
}

// CPUs 0-1 and 2-3 are the cores of socket 0, 4-5 and 6-7 those of socket 1.
constexpr char kTwoSockets[] = "package:2 l3cache:1 core:2 pu:2";

TEST(Places, AreObjectsOfTheKind) {
  const Topology machine = Synthetic(kTwoSockets);
  EXPECT_THAT(Places(machine, "core"), ElementsAre("0-1", "2-3", "4-5", "6-7"));
  EXPECT_THAT(Places(machine, "socket"), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Places(machine, "l3cache"), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Places(machine, "hwthread"), ElementsAre("0", "1", "2", "3", "4", "5", "6", "7"));
  EXPECT_THAT(Places(machine, "machine"), ElementsAre("0-7"));
}

TEST(Places, GroupsAreOfNeighbours) {
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "core:2"), ElementsAre("0-3", "4-7"));
  EXPECT_THAT(Places(Synthetic("package:2 core:3 pu:1"), "core:2"), ElementsAre("0-1", "2-3", "4-5"));
  EXPECT_THAT(Places(Synthetic("package:1 core:5 pu:1"), "core:2"), ElementsAre("0-1", "2-3")) << "each rank has two";
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "core:99"), ElementsAre("0-7"));
}

TEST(Places, MappedBySocketTakeTurns) {
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "core", "socket"), ElementsAre("0-1", "4-5", "2-3", "6-7"));
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "hwthread", "core"), ElementsAre("0", "2", "4", "6", "1", "3", "5", "7"));
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "core", "core:2"), ElementsAre("0-1", "4-5", "2-3", "6-7"));
  EXPECT_THAT(Places(Synthetic("package:2 core:3 pu:1"), "core:2", "socket"), ElementsAre("0-1", "3-4"))
      << "a group stays in its socket";
}

TEST(Places, MappedBySmallerThingsFillUp) {
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "socket", "hwthread"),
              ElementsAre("0-3", "0-3", "0-3", "0-3", "4-7", "4-7", "4-7", "4-7"));
  EXPECT_THAT(Places(Synthetic("package:1 core:3 pu:1"), "core:2", "core"), ElementsAre("0-1", "1-2", "0,2"));
}

TEST(Places, OfManySockets) {
  const Topology machine = Synthetic("package:64 numa:2 core:16 pu:2");
  const auto cores = Places(machine, "core", "socket");
  ASSERT_THAT(cores, SizeIs(64 * 2 * 16));
  EXPECT_EQ(cores[1], "64-65");
  EXPECT_EQ(cores[63], "4032-4033");
  EXPECT_EQ(cores[64], "2-3");
  EXPECT_THAT(Places(machine, "numa"), SizeIs(128));
  EXPECT_EQ(Places(machine, "numa")[1], "32-63");
  EXPECT_EQ(Places(machine, "socket:2")[31], "3968-4095");
}

TEST(Places, OnlyCpusThatCanBeUsed) {
  const Topology part = Restricted(kTwoSockets, "1,4-7");
  EXPECT_THAT(Places(part, "core"), ElementsAre("1", "4-5", "6-7"));
  EXPECT_THAT(Places(part, "socket"), ElementsAre("1", "4-7"));
  EXPECT_THAT(Places(part, "core", "socket"), ElementsAre("1", "4-5", "6-7"))
      << "the first socket is full after one rank";
  EXPECT_THAT(Places(Restricted(kTwoSockets, "5"), "socket:2", "core"), ElementsAre("5"));
  EXPECT_THAT(Places(Restricted("numa:2 core:2 pu:1", "2-3"), "numa"), ElementsAre("2-3"))
      << "the other has memory alone";
}

TEST(Places, WhatTheMachineDoesNotHaveIsTheMachine) {
  EXPECT_THAT(Places(Synthetic("core:4 pu:1"), "socket"), ElementsAre("0-3"));
  EXPECT_THAT(Places(Synthetic("core:4 pu:1"), "l4cache"), ElementsAre("0-3"));
  EXPECT_THAT(Places(Synthetic("pu:4"), "core"), ElementsAre("0", "1", "2", "3"));
}

TEST(Places, UsersListsNameCpus) {
  EXPECT_THAT(Places(Synthetic(kTwoSockets), "user:0+2,7,1"), ElementsAre("0,2", "7", "1"));
  const auto wrong = PlacesOf(Restricted(kTwoSockets, "0-3").get(), Request("user:0,3+4", {}));
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().message, "-bind-to user: names CPU 4, but the usable CPUs are 0-3");
}

std::vector<int> OwnCpus() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  }
  return cpus;
}

TEST(Binder, BindsUntilItGoes) {
  const std::vector<int> before = OwnCpus();
  {
    auto binder = Binder::OfThisHost();
    ASSERT_TRUE(binder) << binder.error().message;
    EXPECT_EQ(OwnCpus(), before);
    ASSERT_EQ(binder.value()->Choose(Request("hwthread", {})), "");
    for (size_t rank = 0; rank < 2 * before.size(); ++rank) {
      EXPECT_EQ(binder.value()->Bind(rank), "");
      EXPECT_THAT(OwnCpus(), SizeIs(1));
    }
  }
  EXPECT_EQ(OwnCpus(), before);
}

TEST(Binder, StaysWithinWhatTheThreadMayUse) {
  const std::vector<int> before = OwnCpus();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(before.back(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  {
    auto binder = Binder::OfThisHost();
    ASSERT_TRUE(binder) << binder.error().message;
    ASSERT_EQ(binder.value()->Choose(Request("core", {})), "");
    for (size_t rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(binder.value()->Bind(rank), "");
      EXPECT_THAT(OwnCpus(), ElementsAre(before.back()));
    }
  }
  cpu_set_t all;
  CPU_ZERO(&all);
  for (const int cpu : before) CPU_SET(cpu, &all);
  ASSERT_EQ(sched_setaffinity(0, sizeof(all), &all), 0);
}

TEST(Binder, DoesNotBindToAnotherMachinesCpus) {
  setenv("HWLOC_SYNTHETIC", kTwoSockets, 1);
  const auto binder = Binder::OfThisHost();
  unsetenv("HWLOC_SYNTHETIC");
  ASSERT_FALSE(binder);
  EXPECT_THAT(binder.error().message, HasSubstr("describe another machine"));
}

}  // namespace
}  // namespace weft::pmi
