#include "pmi/launch/signal_name.h"

#include <gtest/gtest.h>
#include <string.h>

namespace weft::pmi {
namespace {

TEST(SignalNameTest, IsThatOfTheCLibrary) {
  for (int number = -1; number < 70; ++number) EXPECT_STREQ(SignalAbbreviation(number), sigabbrev_np(number)) << number;
}

}  // namespace
}  // namespace weft::pmi
