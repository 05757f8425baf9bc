#include "transport/silent_peer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "transport/socket_address.h"

namespace weft::transport {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

class SilentPeerTest : public ::testing::Test {
 protected:
  bool Look(int at_seconds, SilentPeer::Sample sample) { return peer_.Look(sample, start_ + seconds(at_seconds)); }

  SilentPeer peer_{seconds(30)};
  const SilentPeer::Clock::time_point start_ = SilentPeer::Clock::now();
};

TEST_F(SilentPeerTest, WhoWasAskedAndAnswersNothingForSoLongIsGone) {
  EXPECT_FALSE(Look(0, {true, seconds(0), 10}));
  EXPECT_FALSE(Look(10, {true, seconds(10), 14}));
  EXPECT_FALSE(Look(29, {true, seconds(29), 16}));
  EXPECT_TRUE(Look(30, {true, seconds(30), 16}));
}

TEST_F(SilentPeerTest, WhoWasHardlyAskedMayBeThere) {
  EXPECT_FALSE(Look(0, {true, seconds(0), 10}));
  EXPECT_FALSE(Look(60, {true, seconds(60), 11})) << "a full receiver, who is asked every two minutes";
  EXPECT_FALSE(Look(121, {true, seconds(1), 12})) << "and answers";
  EXPECT_FALSE(Look(240, {true, seconds(120), 14}));
  EXPECT_TRUE(Look(360, {true, seconds(240), 15}));
}

TEST_F(SilentPeerTest, ProbesThatAreAnsweredAreForgotten) {
  EXPECT_FALSE(Look(0, {true, seconds(0), 12}));
  EXPECT_FALSE(Look(40, {true, seconds(5), 10}));
  EXPECT_FALSE(Look(60, {true, seconds(25), 12}));
  EXPECT_TRUE(Look(70, {true, seconds(35), 13}));
}

TEST_F(SilentPeerTest, WhereNothingIsUnderWayNobodyIsGone) {
  EXPECT_FALSE(Look(0, {false, seconds(500), 3}));
  EXPECT_FALSE(Look(100, {false, seconds(600), 3}));
  EXPECT_FALSE(Look(101, {true, seconds(601), 3})) << "sent just now";
  EXPECT_FALSE(Look(120, {true, seconds(620), 9})) << "for less than the limit";
}

// A connection to a program that does not read, for longer than the limit; and what is no connection.
TEST(SilentPeerSockets, AFullReceiverIsThere) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(listen(listener, 1), 0);
  const SocketAddress address = SocketAddress::Local(listener);
  const int sender = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(connect(sender, address.get(), address.length()), 0);
  const int receiver = accept(listener, nullptr, nullptr);
  ASSERT_GE(receiver, 0);
  const std::string block(65536, 'x');
  while (send(sender, block.data(), block.size(), MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
  }
  SilentPeer peer(milliseconds(500));
  for (int look = 0; look < 30; ++look) {
    EXPECT_FALSE(peer.Look(sender, SilentPeer::Clock::now())) << look;
    poll(nullptr, 0, 100);
  }
  EXPECT_FALSE(SilentPeer(milliseconds(0)).Look(listener, SilentPeer::Clock::now()));
  EXPECT_FALSE(SilentPeer(milliseconds(0)).Look(-1, SilentPeer::Clock::now()));
  for (const int fd : {listener, sender, receiver}) close(fd);
}

}  // namespace
}  // namespace weft::transport
