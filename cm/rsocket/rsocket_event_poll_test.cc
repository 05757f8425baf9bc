// repoll_create and its kin of rdma-core 65, through the public API.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <future>

#include "cm/rsocket/rsocket_testing.h"

// Headers before rdma-core 65 do not have them.
extern "C" {
int repoll_create(int flags);
int repoll_ctl(int epfd, int op, int fd, struct epoll_event* event);
int repoll_wait(int epfd, struct epoll_event* events, int maxevents, int timeout);
}

namespace weft::rsocket_api {
namespace {

constexpr int kPatienceMs = 20000;

int Control(int poll, int operation, int fd, uint32_t events, uint64_t data) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = data;
  return repoll_ctl(poll, operation, fd, &event);
}

// The data of the one event that comes, 0 if none does; its bits in `*bits`.
uint64_t Next(int poll, int timeout_ms, uint32_t* bits = nullptr) {
  epoll_event event{};
  const int ready = repoll_wait(poll, &event, 1, timeout_ms);
  EXPECT_GE(ready, 0) << errno;
  if (bits != nullptr) *bits = event.events;
  return ready == 1 ? event.data.u64 : 0;
}

TEST(RsocketEventPoll, TellsOfBytesUntilTheyAreRead) {
  Pair pair = Connected();
  Fd poll(repoll_create(0));
  ASSERT_GE(poll, 0);
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, pair.server, EPOLLIN, 7), 0);
  EXPECT_EQ(Next(poll, 0), 0U);
  ASSERT_EQ(rsend(pair.client, "x", 1, 0), 1);
  uint32_t bits = 0;
  EXPECT_EQ(Next(poll, kPatienceMs, &bits), 7U);
  EXPECT_EQ(bits, static_cast<uint32_t>(EPOLLIN));
  EXPECT_EQ(Next(poll, kPatienceMs), 7U) << "level triggered";
  char byte;
  ASSERT_EQ(rrecv(pair.server, &byte, 1, 0), 1);
  EXPECT_EQ(Next(poll, 0), 0U);
}

TEST(RsocketEventPoll, OneShotIsReportedOnce) {
  Pair pair = Connected();
  Fd poll(repoll_create(EPOLL_CLOEXEC));
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, pair.client, EPOLLOUT | EPOLLONESHOT, 1), 0);
  EXPECT_EQ(Next(poll, kPatienceMs), 1U);
  EXPECT_EQ(Next(poll, 0), 0U);
  ASSERT_EQ(Control(poll, EPOLL_CTL_MOD, pair.client, EPOLLOUT, 2), 0);
  EXPECT_EQ(Next(poll, kPatienceMs), 2U);
}

TEST(RsocketEventPoll, WaitsForOtherDescriptorsToo) {
  Pair pair = Connected();
  Fd poll(repoll_create(0));
  const int other = eventfd(0, 0);
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, pair.server, EPOLLIN, 1), 0);
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, other, EPOLLIN, 2), 0);
  auto waiting = std::async(std::launch::async, [&] { return Next(poll, kPatienceMs); });
  eventfd_write(other, 1);
  EXPECT_EQ(waiting.get(), 2U);
  close(other);
  EXPECT_EQ(Next(poll, 0), 0U) << "a descriptor that was closed";
  EXPECT_EQ(Control(poll, EPOLL_CTL_DEL, other, 0, 0), -1);
  EXPECT_EQ(errno, ENOENT) << "it left the list";
}

TEST(RsocketPoll, OtherDescriptorsAloneAreLookedAtWithoutWaiting) {
  const int other = eventfd(0, 0);
  EXPECT_EQ(PollOne(other, POLLIN, 0), 0);
  eventfd_write(other, 1);
  EXPECT_EQ(PollOne(other, POLLIN, 0), POLLIN);
  close(other);
}

TEST(RsocketEventPoll, AChangeOfTheListReachesThreadsThatWait) {
  Pair pair = Connected();
  Fd poll(repoll_create(0));
  ASSERT_EQ(rsend(pair.client, "x", 1, 0), 1);
  auto one = std::async(std::launch::async, [&] { return Next(poll, kPatienceMs); });
  auto two = std::async(std::launch::async, [&] { return Next(poll, kPatienceMs); });
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, pair.server, EPOLLIN, 5), 0);
  EXPECT_EQ(one.get(), 5U);
  EXPECT_EQ(two.get(), 5U);
}

TEST(RsocketEventPoll, FewEventsAtATimeStarveNobody) {
  Pair first = Connected(), second = Connected();
  Fd poll(repoll_create(0));
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, first.client, EPOLLOUT, 1), 0);
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, second.client, EPOLLOUT, 2), 0);
  const uint64_t one = Next(poll, kPatienceMs);
  const uint64_t two = Next(poll, kPatienceMs);
  EXPECT_EQ(one + two, 3U);
}

TEST(RsocketEventPoll, ClosingItEndsWaits) {
  Fd poll(repoll_create(0));
  const int number = poll;
  auto waiting = std::async(std::launch::async, [number] {
    epoll_event event;
    const int ready = repoll_wait(number, &event, 1, kPatienceMs);
    return ready == -1 ? errno : 0;
  });
  ASSERT_EQ(rclose(poll.Release()), 0);
  EXPECT_EQ(waiting.get(), EBADF) << "whether the wait had begun or not";
  EXPECT_EQ(rclose(number), -1);
  EXPECT_EQ(errno, EBADF);
}

TEST(RsocketEventPoll, WrongCallsGetTheErrnoOfEpoll) {
  Pair pair = Connected();
  Fd poll(repoll_create(0));
  epoll_event event{};
  EXPECT_EQ(repoll_create(1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(repoll_wait(poll, &event, 0, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(repoll_wait(pair.client, &event, 1, 0), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(Control(poll, EPOLL_CTL_MOD, pair.client, EPOLLIN, 0), -1);
  EXPECT_EQ(errno, ENOENT);
  ASSERT_EQ(Control(poll, EPOLL_CTL_ADD, pair.client, EPOLLIN, 0), 0);
  EXPECT_EQ(Control(poll, EPOLL_CTL_ADD, pair.client, EPOLLIN, 0), -1);
  EXPECT_EQ(errno, EEXIST);
  EXPECT_EQ(Control(poll, EPOLL_CTL_ADD, poll, EPOLLIN, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(repoll_ctl(poll, EPOLL_CTL_ADD, pair.server, nullptr), -1);
  EXPECT_EQ(errno, EFAULT);
  EXPECT_EQ(Control(poll, 99, pair.server, EPOLLIN, 0), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(Control(-1, EPOLL_CTL_ADD, pair.server, EPOLLIN, 0), -1);
  EXPECT_EQ(errno, EBADF);
}

}  // namespace
}  // namespace weft::rsocket_api
