#include "transport/send_buffer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "transport/socket_address.h"

namespace weft::transport {
namespace {

int SendBuffer(int fd) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  EXPECT_EQ(getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length), 0);
  return bytes;
}

TEST(SendBufferTest, IsBoundWhereBothEndsAreOnThisHost) {
  const SocketAddress any_port = SocketAddress::Parse("127.0.0.1", 0).value();
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(bind(listener, any_port.get(), any_port.length()), 0);
  ASSERT_EQ(listen(listener, 1), 0);
  const SocketAddress address = SocketAddress::Local(listener);
  EXPECT_NE(address.port(), 0);

  const int client = socket(AF_INET, SOCK_STREAM, 0);
  const int before = SendBuffer(client);
  BoundSendBufferOnOneHost(client);
  EXPECT_EQ(SendBuffer(client), before) << "not connected: nothing is known of its peer";
  ASSERT_EQ(connect(client, address.get(), address.length()), 0);
  EXPECT_EQ(SocketAddress::Peer(client), address);
  BoundSendBufferOnOneHost(client);
  EXPECT_LE(SendBuffer(client), 2 * 256 * 1024);
  for (const int fd : {client, listener}) close(fd);
}

TEST(SendBufferTest, AddressesOfWhatIsNoIpSocketHaveNoFamily) {
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
  EXPECT_EQ(SocketAddress::Local(pair[0]).family(), AF_UNSPEC);
  EXPECT_EQ(SocketAddress::Peer(pair[0]).family(), AF_UNSPEC);
  for (const int fd : pair) close(fd);
}

}  // namespace
}  // namespace weft::transport
