#include "impi/entry/reception.h"

#include <gtest/gtest.h>

#include "impi/entry/hello.h"

namespace weft::impi {
namespace {

using std::chrono::seconds;

constexpr uid_t kUser = 1000;

class ImpiReception : public ::testing::Test {
 protected:
  void Say(Reception::Connection connection, const Bytes& bytes, size_t step = SIZE_MAX) {
    for (size_t at = 0; at < bytes.size();) {
      const size_t count = std::min({bytes.size() - at, reception.Wants(connection), step});
      ASSERT_NE(count, 0u);
      reception.OnBytes(connection, ByteSpan(bytes).subspan(at, count));
      at += count;
    }
  }
  std::string Refused() {
    const auto refused = reception.TakeRefused();
    return refused.size() == 1 ? refused[0].why : std::to_string(refused.size()) + " refused";
  }
  Reception::Time now{};
  Reception reception{{4, 0, 2}, kUser};
};

TEST_F(ImpiReception, EachRankComesInOnce) {
  for (const auto& [rank, place] : {std::pair{0, 1}, {2, 2}, {4, 0}}) {
    const auto connection = static_cast<Reception::Connection>(rank);
    EXPECT_FALSE(reception.HasCome(static_cast<size_t>(place)));
    reception.OnAccepted(connection, kUser, now);
    Say(connection, Hello{rank}.Serialize(), 3);
    const auto welcomed = reception.TakeWelcomed();
    ASSERT_EQ(welcomed.size(), 1u);
    EXPECT_EQ(welcomed[0].connection, connection);
    EXPECT_EQ(welcomed[0].place, place);
    EXPECT_EQ(reception.Wants(connection), 0u) << "what follows is for the agent";
    EXPECT_TRUE(reception.HasCome(static_cast<size_t>(place)));
  }
  EXPECT_EQ(Refused(), "0 refused");
  reception.OnAccepted(9, kUser, now);
  Say(9, Hello{2}.Serialize());
  const auto refused = reception.TakeRefused();
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0].why,
            "a process that connected to the agent says that it is rank 2, which is connected already; a process that was spawned or started by a rank is in "
            "no IMPI job");
  EXPECT_FALSE(refused[0].last_words.empty());
  EXPECT_TRUE(reception.TakeWelcomed().empty());
}

TEST_F(ImpiReception, OtherUsersAndRanksOfElsewhereAreRefused) {
  reception.OnAccepted(1, kUser + 1, now);
  EXPECT_EQ(reception.Wants(1), 0u) << "nothing is read from it";
  EXPECT_EQ(Refused(), "a process of user 1001 connected to the agent, which serves user 1000 only");
  for (const int32_t rank : {1, -1, INT32_MAX}) {
    reception.OnAccepted(2, kUser, now);
    Say(2, Hello{rank}.Serialize());
    EXPECT_EQ(Refused(), "a process that connected to the agent says that it is rank " + std::to_string(rank) +
                             ", which is not on this host; was WEFT_IMPI_AGENT changed?");
  }
  reception.OnAccepted(3, kUser, now);
  Say(3, Bytes(Hello::kSize, 'G'));
  EXPECT_NE(Refused().find("it is no process of Weft's MPI library"), std::string::npos);
}

TEST_F(ImpiReception, SilentOnesAreBoundedInNumberAndTime) {
  for (Reception::Connection i = 0; i < Reception::kMostWaiting; ++i) {
    EXPECT_TRUE(reception.has_room());
    reception.OnAccepted(i, kUser, now);
  }
  EXPECT_FALSE(reception.has_room());
  reception.OnClosed(0);
  EXPECT_EQ(Refused(), "a process that connected to the agent left before it said its rank");
  EXPECT_TRUE(reception.has_room());
  EXPECT_EQ(reception.deadline(), now + Reception::kPatience);
  reception.OnTime(now + Reception::kPatience - seconds(1));
  EXPECT_EQ(Refused(), "0 refused");
  reception.OnTime(now + Reception::kPatience);
  EXPECT_EQ(reception.TakeRefused().size(), Reception::kMostWaiting - 1);
  EXPECT_EQ(reception.deadline(), std::nullopt);
}

}  // namespace
}  // namespace weft::impi
