#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <thread>

#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

constexpr int kPatienceMs = 20000;

#ifdef __SANITIZE_THREAD__
#define NEEDS_FORK() GTEST_SKIP() << "ThreadSanitizer allows no new threads after a fork"
#else
#define NEEDS_FORK()
#endif

TEST(RsocketConnection, IsMadeAndShowsItsNames) {
  sockaddr_in address;
  Fd listener = Listener(&address);
  Fd client(::rsocket(AF_INET, SOCK_STREAM, 0));
  auto connecting = std::async(std::launch::async, [&] { return ConnectTo(client, address); });
  sockaddr_in peer{};
  socklen_t length = sizeof peer;
  Fd server(raccept(listener, reinterpret_cast<sockaddr*>(&peer), &length));
  ASSERT_GE(server, 0);
  ASSERT_EQ(connecting.get(), 0);
  EXPECT_EQ(length, sizeof peer);

  sockaddr_in name{};
  ASSERT_EQ(rgetsockname(client, reinterpret_cast<sockaddr*>(&name), &length), 0);
  EXPECT_EQ(name.sin_port, peer.sin_port);
  ASSERT_EQ(rgetpeername(client, reinterpret_cast<sockaddr*>(&name), &length), 0);
  EXPECT_EQ(name.sin_port, address.sin_port);
  EXPECT_EQ(ConnectTo(client, address), -1);
  EXPECT_EQ(errno, EISCONN);
}

TEST(RsocketConnection, CanBeMadeWithoutBlocking) {
  sockaddr_in address;
  Fd listener = Listener(&address);
  rfcntl(listener, F_SETFL, O_NONBLOCK);
  EXPECT_EQ(raccept(listener, nullptr, nullptr), -1);
  EXPECT_EQ(errno, EAGAIN);
  Fd client(::rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  EXPECT_EQ(rfcntl(client, F_GETFL), O_RDWR | O_NONBLOCK);
  EXPECT_EQ(ConnectTo(client, address), -1);
  EXPECT_EQ(errno, EINPROGRESS);
  EXPECT_EQ(PollOne(listener, POLLIN, kPatienceMs), POLLIN);
  EXPECT_EQ(PollOne(client, POLLOUT, 0), 0);
  EXPECT_EQ(ConnectTo(client, address), -1);
  EXPECT_EQ(errno, EALREADY);
  Fd server(raccept(listener, nullptr, nullptr));
  ASSERT_GE(server, 0);
  EXPECT_EQ(PollOne(client, POLLOUT, kPatienceMs), POLLOUT);
  int error = -1;
  socklen_t length = sizeof error;
  EXPECT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
  EXPECT_EQ(error, 0);
  char byte;
  EXPECT_EQ(rrecv(client, &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
}

TEST(RsocketConnection, AThousandAreHeldByOneProcess) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kConnections = 100;
#else
  constexpr int kConnections = 1000;
#endif
  sockaddr_in address;
  Fd listener = Listener(&address);
  std::vector<Fd> clients, servers;
  for (int i = 0; i < kConnections; ++i) {
    clients.emplace_back(::rsocket(AF_INET, SOCK_STREAM, 0));
    auto connecting = std::async(std::launch::async, [&] { return ConnectTo(clients.back(), address); });
    servers.emplace_back(raccept(listener, nullptr, nullptr));
    ASSERT_EQ(connecting.get(), 0) << i << ": " << strerror(errno);
    ASSERT_GE(servers.back(), 0) << i << ": " << strerror(errno);
  }
  std::vector<pollfd> all;
  for (const Fd& server : servers) all.push_back({server, POLLIN, 0});
  EXPECT_EQ(rpoll(all.data(), all.size(), 0), 0);
  for (int turn = 0; turn < 2; ++turn) {
    for (int i = 0; i < kConnections; ++i) {
      const auto number = static_cast<uint32_t>(i);
      ASSERT_EQ(rsend(clients[i], &number, sizeof number, 0), static_cast<ssize_t>(sizeof number));
    }
    int ready = 0;
    for (int look = 0; look < 100 && ready < kConnections; ++look) {
      ready = rpoll(all.data(), all.size(), 100);
      if (ready < kConnections) usleep(10'000);
    }
    EXPECT_EQ(ready, kConnections);
    for (int i = 0; i < kConnections; ++i) {
      uint32_t number = 0;
      ASSERT_EQ(rrecv(servers[i], &number, sizeof number, MSG_WAITALL), static_cast<ssize_t>(sizeof number));
      EXPECT_EQ(number, static_cast<uint32_t>(i));
    }
  }
  EXPECT_EQ(rpoll(all.data(), all.size(), 0), 0);
  clients.clear();
  for (const Fd& server : servers) {
    char byte;
    EXPECT_EQ(rrecv(server, &byte, 1, 0), 0);
  }
}

TEST(RsocketConnection, IsRefusedWhereNobodyListens) {
  sockaddr_in address;
  { Fd listener = Listener(&address); }
  Fd client(::rsocket(AF_INET, SOCK_STREAM, 0));
  EXPECT_EQ(ConnectTo(client, address), -1);
  EXPECT_EQ(errno, ECONNREFUSED);
  // And the socket can be used for another try.
  Fd listener(::rsocket(AF_INET, SOCK_STREAM, 0));
  int on = 1;
  rsetsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ASSERT_EQ(rbind(listener, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(rlisten(listener, 1), 0);
  auto connecting = std::async(std::launch::async, [&] { return ConnectTo(client, address); });
  Fd server(raccept(listener, nullptr, nullptr));
  EXPECT_EQ(connecting.get(), 0);
}

TEST(RsocketConnection, FailsAsynchronouslyWithSoError) {
  sockaddr_in address;
  { Fd listener = Listener(&address); }
  Fd client(::rsocket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0));
  if (ConnectTo(client, address) == -1 && errno == EINPROGRESS) {
    const short events = PollOne(client, POLLOUT, kPatienceMs);
    EXPECT_EQ(events & (POLLOUT | POLLERR), POLLOUT | POLLERR);
    int error = 0;
    socklen_t length = sizeof error;
    EXPECT_EQ(rgetsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
    EXPECT_EQ(error, ECONNREFUSED);
  } else {
    EXPECT_EQ(errno, ECONNREFUSED);
  }
}

TEST(RsocketConnection, EndsWithZeroAfterTheData) {
  Pair pair = Connected();
  ASSERT_TRUE(SendAll(pair.client, Pattern(1000)));
  pair.client.Reset();
  EXPECT_EQ(PollOne(pair.server, POLLIN, kPatienceMs), POLLIN);  // no POLLHUP yet, which some take for a failure
  EXPECT_EQ(ReceiveAll(pair.server, 5000), Pattern(1000));
  char byte;
  EXPECT_EQ(rrecv(pair.server, &byte, 1, 0), 0);
  EXPECT_EQ(rrecv(pair.server, &byte, 1, 0), 0);
  EXPECT_NE(PollOne(pair.server, POLLIN, 0) & POLLIN, 0);
}

// As send(2), recv(2) and poll(2) do.
TEST(RsocketConnection, CallsThatSucceedLeaveErrnoAlone) {
  Pair pair = Connected();
  for (const int flags : {0, int{MSG_DONTWAIT}}) {
    char bytes[100];
    errno = ERANGE;
    EXPECT_EQ(rsend(pair.client, bytes, sizeof bytes, flags), static_cast<ssize_t>(sizeof bytes));
    EXPECT_EQ(errno, ERANGE) << "rsend";
    EXPECT_EQ(PollOne(pair.server, POLLIN, kPatienceMs), POLLIN);
    EXPECT_EQ(errno, ERANGE) << "rpoll";
    EXPECT_EQ(rrecv(pair.server, bytes, sizeof bytes, flags), static_cast<ssize_t>(sizeof bytes));
    EXPECT_EQ(errno, ERANGE) << "rrecv";
    EXPECT_EQ(PollOne(pair.server, POLLIN, 0), 0);
    EXPECT_EQ(errno, ERANGE) << "rpoll of nothing";
  }
  pair.client.Reset();
  char byte;
  errno = ERANGE;
  EXPECT_EQ(rrecv(pair.server, &byte, 1, 0), 0);
  EXPECT_EQ(errno, ERANGE) << "rrecv at the end";
}

TEST(RsocketConnection, HalfCloseLeavesTheOtherHalf) {
  Pair pair = Connected();
  ASSERT_TRUE(SendAll(pair.client, Pattern(10)));
  ASSERT_EQ(rshutdown(pair.client, SHUT_WR), 0);
  EXPECT_EQ(rsend(pair.client, "x", 1, 0), -1);
  EXPECT_EQ(errno, EPIPE);
  EXPECT_EQ(ReceiveAll(pair.server, 100), Pattern(10));
  ASSERT_TRUE(SendAll(pair.server, Pattern(70000, 2)));
  EXPECT_EQ(ReceiveAll(pair.client, 70000), Pattern(70000, 2));
  ASSERT_EQ(rshutdown(pair.server, SHUT_WR), 0);
  char byte;
  EXPECT_EQ(rrecv(pair.client, &byte, 1, 0), 0);
}

TEST(RsocketConnection, SendingToAPeerThatClosedFails) {
  Pair pair = Connected();
  pair.server.Reset();
  EXPECT_NE(PollOne(pair.client, POLLIN, kPatienceMs) & POLLHUP, 0);
  EXPECT_EQ(rsend(pair.client, "x", 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(RsocketConnection, CloseWakesAThreadThatWaits) {
  Pair pair = Connected();
  auto waiting = std::async(std::launch::async, [fd = static_cast<int>(pair.server)] {
    char byte;
    const ssize_t got = rrecv(fd, &byte, 1, 0);
    return got < 0 ? -errno : static_cast<int>(got);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it sleeps by then, or finds the socket closed: both are well
  pair.server.Reset();
  EXPECT_EQ(waiting.get(), -EBADF);
}

// SIGKILL: nobody says goodbye.
TEST(RsocketConnection, APeerThatDiesResetsIt) {
  NEEDS_FORK();
  sockaddr_in address;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Fd listener = Listener(&address);
    if (write(ready[1], &address, sizeof address) != sizeof address) _exit(1);
    Fd server(raccept(listener, nullptr, nullptr));
    rsend(server, "last", 4, 0);
    pause();
    _exit(0);
  }
  ASSERT_EQ(read(ready[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
  Fd client(::rsocket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(ConnectTo(client, address), 0);
  char text[8];
  ASSERT_EQ(rrecv(client, text, 4, MSG_WAITALL), 4);
  kill(child, SIGKILL);
  EXPECT_EQ(rrecv(client, text, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  errno = ERANGE;  // rstream asks errno after 0, and would go on for ever with EAGAIN of a system call of ours
  EXPECT_EQ(rrecv(client, text, 1, MSG_DONTWAIT), 0);
  EXPECT_EQ(errno, ERANGE);
  EXPECT_EQ(rsend(client, "x", 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  close(ready[0]);
  close(ready[1]);
}

// A program that ends without closing: the peer sees the end of the stream, as of a TCP socket.
TEST(RsocketConnection, ExitIsAnOrderlyEnd) {
  NEEDS_FORK();
  sockaddr_in address;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t child = fork();
  if (child == 0) {
    Fd listener = Listener(&address);
    if (write(ready[1], &address, sizeof address) != sizeof address) _exit(1);
    static Fd* server = new Fd(raccept(listener, nullptr, nullptr));
    rsend(*server, "last", 4, 0);
    exit(0);
  }
  ASSERT_EQ(read(ready[0], &address, sizeof address), static_cast<ssize_t>(sizeof address));
  Fd client(::rsocket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(ConnectTo(client, address), 0);
  EXPECT_EQ(waitpid(child, nullptr, 0), child);
  char text[8];
  EXPECT_EQ(rrecv(client, text, 8, MSG_WAITALL), 4);
  EXPECT_EQ(rrecv(client, text, 8, 0), 0);
  close(ready[0]);
  close(ready[1]);
}

TEST(RsocketConnection, AForkedChildHasNoRsockets) {
  NEEDS_FORK();
  Pair pair = Connected();
  const pid_t child = fork();
  if (child == 0) {
    char byte;
    if (rrecv(pair.client, &byte, 1, 0) != -1 || errno != EBADF) _exit(1);
    if (rclose(pair.client) != -1 || errno != EBADF) _exit(2);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(SendAll(pair.client, Pattern(100)));
  EXPECT_EQ(ReceiveAll(pair.server, 100), Pattern(100));
}

TEST(RsocketConnection, ManyAtOnceThroughOnePoll) {
  constexpr int kCount = 20;
  sockaddr_in address;
  Fd listener = Listener(&address);
  auto clients = std::async(std::launch::async, [&] {
    std::vector<Fd> connected;
    for (int i = 0; i < kCount; ++i) {
      connected.emplace_back(::rsocket(AF_INET, SOCK_STREAM, 0));
      EXPECT_EQ(ConnectTo(connected.back(), address), 0);
    }
    return connected;
  });
  std::vector<Fd> servers;
  for (int i = 0; i < kCount; ++i) servers.emplace_back(raccept(listener, nullptr, nullptr));
  std::vector<Fd> connected = clients.get();
  std::vector<pollfd> fds;
  for (const Fd& server : servers) fds.push_back({server, POLLIN, 0});
  EXPECT_EQ(rpoll(fds.data(), fds.size(), 0), 0);
  for (int i = 0; i < kCount; ++i) {
    auto waiting = std::async(std::launch::async, [&] { return rpoll(fds.data(), fds.size(), kPatienceMs); });
    const auto at = static_cast<size_t>(i * 7 % kCount);
    ASSERT_TRUE(SendAll(connected[at], Pattern(1)));
    EXPECT_EQ(waiting.get(), 1);
    int ready = -1;
    for (int j = 0; j < kCount; ++j) {
      if (fds[static_cast<size_t>(j)].revents != 0) ready = j;
    }
    ASSERT_GE(ready, 0);
    char byte;
    EXPECT_EQ(rrecv(fds[static_cast<size_t>(ready)].fd, &byte, 1, MSG_DONTWAIT), 1);
  }
}

TEST(RsocketConnection, OrdinaryDescriptorsAndRsocketsArePolledTogether) {
  Pair pair = Connected();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pollfd fds[] = {{pair.server, POLLIN, 0}, {ends[0], POLLIN, 0}, {-1, POLLIN, 0}};
  EXPECT_EQ(rpoll(fds, 3, 10), 0);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  EXPECT_EQ(rpoll(fds, 3, kPatienceMs), 1);
  EXPECT_EQ(fds[1].revents, POLLIN);
  ASSERT_TRUE(SendAll(pair.client, Pattern(1)));
  while (rpoll(fds, 3, kPatienceMs) == 1) {
  }
  EXPECT_EQ(fds[0].revents, POLLIN);

  fd_set readable, writable;
  FD_ZERO(&readable);
  FD_ZERO(&writable);
  FD_SET(pair.server, &readable);
  FD_SET(ends[0], &readable);
  FD_SET(pair.client, &readable);
  FD_SET(pair.client, &writable);
  timeval limit{20, 0};
  const int highest = std::max({static_cast<int>(pair.server), static_cast<int>(pair.client), ends[0]});
  EXPECT_EQ(rselect(highest + 1, &readable, &writable, nullptr, &limit), 3);
  EXPECT_TRUE(FD_ISSET(pair.server, &readable));
  EXPECT_FALSE(FD_ISSET(pair.client, &readable));
  EXPECT_TRUE(FD_ISSET(pair.client, &writable));
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace weft::rsocket_api
