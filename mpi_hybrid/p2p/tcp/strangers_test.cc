#include "mpi_hybrid/p2p/tcp/strangers.h"

#include <errno.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <utility>

#include "base/log.h"
#include "mpi_hybrid/p2p/loop/event_loop.h"
#include "mpi_hybrid/p2p/tcp/few_descriptors.h"
#include "mpi_hybrid/p2p/greeting/greeting.h"
#include "mpi_hybrid/p2p/tcp/socket.h"
#include "mpi_hybrid/p2p/testing/fake_pmi.h"

namespace weft::mpi {
namespace {

using testing::LoopbackBond;
using testing::LoopbackHello;
using Clock = Strangers::Clock;

// The listener of rank 0 of two.
class StrangersTest : public ::testing::Test {
 protected:
  StrangersTest()
      : strangers_(loop_, processes_, [this](Visitor visitor) { admitted_ = std::move(visitor.socket); }) {
    processes_.Start(LoopbackBond().secret, 0, 2);
    EXPECT_TRUE(loop_.Open());
    Socket listener = Socket::Listen(*transport::SocketAddress::Parse("127.0.0.1", 0));
    address_ = listener.LocalAddress();
    strangers_.Listen(std::move(listener));
  }
  // What a thread in MPI does about ready descriptors.
  bool Look() { return loop_.Dispatch(10); }
  static bool Take(const Socket& socket, uint8_t* into, size_t length) {
    const iovec piece = {into, length};
    return socket.Read({&piece, 1}) == static_cast<ssize_t>(length);
  }

  ProcessTable processes_;
  EventLoop loop_;
  transport::SocketAddress address_;
  Socket admitted_;
  Strangers strangers_;
};

TEST_F(StrangersTest, WhoComputesForAnHourBeforeItProvesItselfIsAdmitted) {
  const Socket rank_1 = Socket::StartConnect(address_);
  ASSERT_TRUE(Look());
  const auto later = Clock::now() + std::chrono::hours(1);
  strangers_.OnTime(later);
  EXPECT_EQ(strangers_.deadline(), std::nullopt) << "a rank that waits for messages would wake for nothing";
  uint8_t challenge[Challenge::kLength], hello[Hello::kLength];
  ASSERT_TRUE(Take(rank_1, challenge, sizeof(challenge)));
  LoopbackHello(1, 0).Write(LoopbackBond().secret, challenge, hello);
  const iovec piece = {hello, sizeof(hello)};
  ASSERT_EQ(rank_1.Write({&piece, 1}), static_cast<ssize_t>(sizeof(hello)));
  for (int turn = 0; turn < 500 && !admitted_; ++turn) Look();
  EXPECT_TRUE(admitted_);
}

// Another thread may be faster to take the number of the reserve.
TEST_F(StrangersTest, AReserveThatWasLostIsMadeAgainWhenThereIsRoom) {
  SilenceWarnings(true);
  strangers_.Close();
  Socket listener = Socket::Listen(*transport::SocketAddress::Parse("127.0.0.1", 0));
  address_ = listener.LocalAddress();
  {
    const FewDescriptors none(0);
    strangers_.Listen(std::move(listener));
  }
  {
    const Socket passing = Socket::StartConnect(address_);
    ASSERT_TRUE(Look());
  }
  ASSERT_TRUE(Look()) << "it went";
  const Socket waits = Socket::StartConnect(address_);
  const Socket other(dup(0));  // the other number below the reserve's, which would lie above the limit else
  const FewDescriptors none(0);
  const auto end = Clock::now() + 2 * Strangers::kStarved;
  uint8_t byte;
  const iovec piece = {&byte, 1};
  ssize_t got;
  while ((got = waits.Read({&piece, 1})) == -EAGAIN && Clock::now() < end) {
    Look();
    strangers_.OnTime(Clock::now());
  }
  EXPECT_TRUE(got == 0 || got == -ECONNRESET) << "it is to be turned away";
  SilenceWarnings(false);
}

}  // namespace
}  // namespace weft::mpi
