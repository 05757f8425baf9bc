#include "sim/connection/lone_acknowledgements.h"

#include <gtest/gtest.h>

namespace weft::sim {
namespace {

TEST(LoneAcknowledgements, AreExpectedOfAProgramThatHasNotAnsweredYet) {
  LoneAcknowledgements lone;
  for (int messages = 0; messages < 1000; ++messages) {
    ASSERT_TRUE(lone.expected());
    lone.WentAhead(7);
    lone.OnPoll(/*received=*/false, 7);
  }
}

TEST(LoneAcknowledgements, AreNotExpectedOfOneThatAnswers) {
  LoneAcknowledgements lone;
  lone.WentAhead(0);
  lone.OnPoll(/*received=*/false, 1);
  EXPECT_FALSE(lone.expected());
  for (uint64_t posted = 2; posted < 1000; ++posted) {  // each goes with an answer
    lone.OnPoll(/*received=*/true, posted);
    ASSERT_FALSE(lone.expected());
  }
}

TEST(LoneAcknowledgements, AreNotExpectedInAStream) {
  LoneAcknowledgements lone;
  lone.WentAhead(0);
  lone.OnPoll(/*received=*/true, 0);
  EXPECT_FALSE(lone.expected());
}

TEST(LoneAcknowledgements, AWrongGuessIsMadeOnceInSoMany) {
  LoneAcknowledgements lone;
  int wasted = 0;
  for (int messages = 0; messages < 160; ++messages) {  // the worst case: a program answers whenever it was acknowledged ahead
    if (lone.expected()) {
      lone.WentAhead(0);
      lone.OnPoll(/*received=*/false, 1);
      ++wasted;
    } else {
      lone.WentAlone();
    }
  }
  EXPECT_EQ(wasted, 1 + 160 / (LoneAcknowledgements::kEnough + 1));
}

}  // namespace
}  // namespace weft::sim
