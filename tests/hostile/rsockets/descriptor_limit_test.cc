// rsockets where descriptors run out.
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include "cm/rsocket/rsocket_testing.h"

namespace weft::rsocket_api {
namespace {

struct Ends {
  Fd client, server;
};

// Both ends of a connection, or what could not be had. Waits for nobody who cannot come.
Ends Connect(int listener, const sockaddr_in& address, int* error) {
  *error = 0;
  Ends ends{Fd(::rsocket(AF_INET, SOCK_STREAM, 0)), Fd()};
  if (ends.client < 0) return *error = errno, std::move(ends);
  auto connecting = std::async(std::launch::async, [&] { return ConnectTo(ends.client, address) == 0 ? 0 : errno; });
  while (ends.server < 0) {
    pollfd ready{listener, POLLIN, 0};
    if (rpoll(&ready, 1, 50) == 1) {
      ends.server = Fd(raccept(listener, nullptr, nullptr));
      if (ends.server < 0 && errno != EAGAIN) {
        *error = errno;
        break;
      }
    }
    if (connecting.wait_for(std::chrono::seconds(0)) == std::future_status::ready && ends.server < 0) {
      *error = connecting.get();
      return ends;
    }
  }
  if (*error != 0) {
    // The request still waits: whoever makes room accepts it.
    const int fd = ends.client.Release();
    rclose(fd);
    connecting.wait();
    return ends;
  }
  *error = connecting.get();
  return ends;
}

void Exchange(const Ends& ends) {
  char byte = 0;
  ASSERT_EQ(rsend(ends.client, "x", 1, 0), 1) << strerror(errno);
  ASSERT_EQ(rrecv(ends.server, &byte, 1, 0), 1) << strerror(errno);
  ASSERT_EQ(rsend(ends.server, "y", 1, 0), 1) << strerror(errno);
  ASSERT_EQ(rrecv(ends.client, &byte, 1, 0), 1) << strerror(errno);
}

TEST(DescriptorLimit, FailsTheOneCallAndNothingThatLives) {
  sockaddr_in address;
  Fd listener = Listener(&address);  // the soft limit is raised here, once
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  limit.rlim_cur = 300;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ASSERT_EQ(rfcntl(listener, F_SETFL, O_NONBLOCK), 0);
  std::vector<Ends> open;
  int error = 0;
  while (open.size() < 300) {
    Ends ends = Connect(listener, address, &error);
    if (error != 0) break;
    open.push_back(std::move(ends));
  }
  std::printf("%zu connections under a limit of 300 descriptors, then: %s\n", open.size(), strerror(error));
  // Either end may be the one that finds no descriptor. The accepting one turns a stranger away, or lets the connecting one wait for room, and
  // that one gives up in the end.
  EXPECT_TRUE(error == EMFILE || error == ENOMEM || error == ENOBUFS || error == ECONNRESET || error == ETIMEDOUT) << strerror(error);
  ASSERT_GT(open.size(), 10u);
  for (const Ends& ends : open) Exchange(ends);
  // And again with room.
  open.resize(open.size() - 5);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  while (rpoll(std::array<pollfd, 1>{{{listener, POLLIN, 0}}}.data(), 1, 100) == 1) {
    Fd stale(raccept(listener, nullptr, nullptr));
    if (stale < 0) break;
  }
  Ends again = Connect(listener, address, &error);
  ASSERT_EQ(error, 0) << strerror(error);
  Exchange(again);
  for (const Ends& ends : open) Exchange(ends);
}

}  // namespace
}  // namespace weft::rsocket_api
