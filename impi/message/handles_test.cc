#include "impi/message/handles.h"

#include <gtest/gtest.h>

#include <string>

namespace weft::impi {
namespace {

TEST(ImpiHandles, AreNeverZeroAndFindWhatTheyWereGivenFor) {
  Handles<std::string> handles;
  const uint64_t one = handles.Add("one"), two = handles.Add("two");
  EXPECT_NE(one, 0u);
  EXPECT_EQ(handles.Get(one), "one");
  EXPECT_EQ(handles.Get(two), "two");
  EXPECT_EQ(handles.Find(0), nullptr);
  EXPECT_EQ(handles.Find(two + 1), nullptr);
  EXPECT_EQ(handles.Find(~uint64_t{0}), nullptr);
}

TEST(ImpiHandles, OfAnObjectThatIsGoneFindNothing) {
  Handles<std::string> handles;
  const uint64_t old = handles.Add("old");
  handles.Remove(old);
  EXPECT_EQ(handles.Find(old), nullptr);
  EXPECT_EQ(handles.size(), 0u);
  const uint64_t next = handles.Add("next");
  EXPECT_EQ(static_cast<uint32_t>(next), static_cast<uint32_t>(old)) << "the place is used again";
  EXPECT_EQ(handles.Find(old), nullptr);
  EXPECT_EQ(handles.Get(next), "next");
}

TEST(ImpiHandles, ObjectsStayWhereTheyAre) {
  Handles<int> handles;
  const uint64_t first = handles.Add(7);
  const int* place = handles.Find(first);
  for (int i = 0; i < 10000; ++i) handles.Add(i);
  EXPECT_EQ(handles.Find(first), place);
}

}  // namespace
}  // namespace weft::impi
