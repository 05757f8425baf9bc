#include <netinet/tcp.h>

#include <cerrno>

#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

int Get(int fd, int level, int name) {
  int value = -1;
  socklen_t length = sizeof value;
  EXPECT_EQ(rgetsockopt(fd, level, name, &value, &length), 0);
  return value;
}

int Set(int fd, int level, int name, int value) { return rsetsockopt(fd, level, name, &value, sizeof value); }

TEST(RsocketOptions, SizesAreKeptAndBounded) {
  Fd fd(::rsocket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(Get(fd, SOL_RDMA, RDMA_SQSIZE), 384);
  EXPECT_EQ(Set(fd, SOL_RDMA, RDMA_SQSIZE, 100), 0);
  EXPECT_EQ(Get(fd, SOL_RDMA, RDMA_SQSIZE), 100);
  EXPECT_EQ(Set(fd, SOL_RDMA, RDMA_RQSIZE, 1 << 20), 0);
  EXPECT_EQ(Get(fd, SOL_RDMA, RDMA_RQSIZE), 0x7ffe);
  EXPECT_EQ(Set(fd, SOL_SOCKET, SO_RCVBUF, 1 << 19), 0);
  EXPECT_EQ(Get(fd, SOL_SOCKET, SO_RCVBUF), 1 << 19);
  EXPECT_EQ(Set(fd, SOL_RDMA, RDMA_INLINE, 0), 0);
  EXPECT_EQ(Set(fd, SOL_RDMA, RDMA_IOMAPSIZE, 4), 0);
  EXPECT_EQ(Get(fd, SOL_RDMA, RDMA_IOMAPSIZE), 4);
  EXPECT_EQ(Set(fd, SOL_SOCKET, SO_RCVBUF, -1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(RsocketOptions, SizesOfAConnectionAreFixed) {
  Pair pair = Connected();
  EXPECT_EQ(Set(pair.client, SOL_SOCKET, SO_RCVBUF, 1 << 20), 0);  // as a program may, without effect
  EXPECT_EQ(Get(pair.client, SOL_SOCKET, SO_RCVBUF), 1 << 17);
  EXPECT_EQ(Set(pair.client, SOL_RDMA, RDMA_SQSIZE, 100), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(RsocketOptions, OfSocketsAndTcp) {
  Fd fd(::rsocket(AF_INET6, SOCK_STREAM, 0));
  EXPECT_EQ(Set(fd, IPPROTO_TCP, TCP_NODELAY, 1), 0);
  EXPECT_EQ(Get(fd, IPPROTO_TCP, TCP_NODELAY), 1);
  EXPECT_EQ(Set(fd, SOL_SOCKET, SO_REUSEADDR, 1), 0);
  EXPECT_EQ(Get(fd, SOL_SOCKET, SO_REUSEADDR), 1);
  EXPECT_EQ(Set(fd, SOL_SOCKET, SO_KEEPALIVE, 1), 0);
  EXPECT_EQ(Set(fd, IPPROTO_TCP, TCP_KEEPIDLE, 60), 0);
  EXPECT_EQ(Get(fd, IPPROTO_TCP, TCP_KEEPIDLE), 60);
  EXPECT_EQ(Set(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1), 0);
  EXPECT_EQ(Get(fd, IPPROTO_IPV6, IPV6_V6ONLY), 1);
  EXPECT_EQ(Get(fd, SOL_SOCKET, SO_TYPE), SOCK_STREAM);
  EXPECT_EQ(Get(fd, SOL_SOCKET, SO_DOMAIN), AF_INET6);
  EXPECT_EQ(Get(fd, SOL_SOCKET, SO_ERROR), 0);
  EXPECT_EQ(Set(fd, SOL_SOCKET, 9999, 1), -1);
  EXPECT_EQ(errno, ENOPROTOOPT);
  int value = 1;
  EXPECT_EQ(rsetsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, 1), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST(RsocketMisuse, IsRefusedWithTheErrnoOfSockets) {
  char byte = 0;
  EXPECT_EQ(::rsocket(AF_UNIX, SOCK_STREAM, 0), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
  EXPECT_EQ(::rsocket(AF_INET, SOCK_RAW, 0), -1);
  EXPECT_EQ(errno, ESOCKTNOSUPPORT);
  EXPECT_EQ(::rsocket(AF_INET, SOCK_STREAM, IPPROTO_UDP), -1);
  EXPECT_EQ(errno, EPROTONOSUPPORT);
  for (const int bad : {-1, 0, 1 << 20}) {
    EXPECT_EQ(rrecv(bad, &byte, 1, 0), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(rsend(bad, &byte, 1, 0), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(rclose(bad), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(rlisten(bad, 1), -1);
    EXPECT_EQ(errno, EBADF);
    EXPECT_EQ(rfcntl(bad, F_GETFL), -1);
    EXPECT_EQ(errno, EBADF);
  }
  Fd fd(::rsocket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(rrecv(fd, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(rsend(fd, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(rshutdown(fd, SHUT_WR), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(raccept(fd, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EINVAL);
  sockaddr_in address = Loopback();
  socklen_t length = sizeof address;
  EXPECT_EQ(rgetpeername(fd, reinterpret_cast<sockaddr*>(&address), &length), -1);
  EXPECT_EQ(errno, ENOTCONN);
  EXPECT_EQ(rbind(fd, reinterpret_cast<sockaddr*>(&address), 3), -1);
  EXPECT_EQ(errno, EINVAL);
  address.sin_family = AF_INET6;
  EXPECT_EQ(rbind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), -1);
  EXPECT_EQ(errno, EAFNOSUPPORT);
  address = Loopback();
  EXPECT_EQ(rbind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(rbind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rfcntl(fd, F_DUPFD, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  iovec bad_vector[] = {{&byte, SIZE_MAX}};
  EXPECT_EQ(rwritev(fd, bad_vector, 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(rreadv(fd, bad_vector, -1), -1);
  EXPECT_EQ(errno, EINVAL);
  pollfd idle{fd, POLLIN, 0};
  EXPECT_EQ(rpoll(&idle, 1, 0), 1);
  EXPECT_EQ(idle.revents, POLLHUP);
}

}  // namespace
}  // namespace weft::rsocket_api
