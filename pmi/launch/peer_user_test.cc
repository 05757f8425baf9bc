#include "pmi/launch/peer_user.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sstream>

namespace weft::pmi {
namespace {

using transport::SocketAddress;

constexpr char kTable[] =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
    "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 11 1 0000000000000000 100 0 0 10 0\n"
    "   1: 0100007F:C350 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 12 1 0000000000000000 20 4 30 10 -1\n"
    "   2: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000    33        0 13 1 0000000000000000 20 4 30 10 -1\n";

TEST(PeerUser, IsThatOfTheSocketAtTheOtherEnd) {
  const auto server = *SocketAddress::Parse("127.0.0.1", 8080), client = *SocketAddress::Parse("127.0.0.1", 50000);
  const auto user = [](const SocketAddress& own, const SocketAddress& other) {
    std::istringstream table(kTable);
    return UserOfSocket(table, own, other);
  };
  EXPECT_EQ(user(client, server), 1000u);
  EXPECT_EQ(user(server, client), 33u);
  EXPECT_EQ(user(*SocketAddress::Parse("127.0.0.1", 50001), server), std::nullopt);
  EXPECT_EQ(user(*SocketAddress::Parse("127.0.0.2", 50000), server), std::nullopt);
  EXPECT_EQ(user(*SocketAddress::Parse("::1", 50000), server), std::nullopt);
}

TEST(PeerUser, IsThisOneForAConnectionWithItself) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  SocketAddress address = *SocketAddress::Parse("127.0.0.1", 0);
  ASSERT_EQ(bind(listener, address.get(), address.length()), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  address = SocketAddress::Local(listener);
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(client, address.get(), address.length()), 0);
  const int accepted = accept(listener, nullptr, nullptr);
  EXPECT_EQ(UserOfPeer(accepted), geteuid());
  EXPECT_EQ(UserOfPeer(listener), std::nullopt);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  EXPECT_EQ(UserOfPeer(ends[0]), std::nullopt);
  for (const int fd : {listener, client, accepted, ends[0], ends[1]}) close(fd);
}

}  // namespace
}  // namespace weft::pmi
